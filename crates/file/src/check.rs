//! The service's part of `lazurite check`.
pub async fn check(_: &dyn engine::Engine, _: &mut (dyn FnMut(String) + Send)) -> Result<(), engine::EngineError> {
    Ok(())
}

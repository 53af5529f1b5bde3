//! Who is let in, and how the server proves who it is: accounts, tokens and the certificate.
//!
//! They are read and checked before a port is opened or data is touched, and read again whenever their files change.

use std::env::VarError;
use std::path::Path;
use std::sync::Arc;

use auth::{Accounts, Tokens};
use engine_postgres::PostgresEngine;
use server::{Client, Current, Issuer, Manners, Shared};
use time::OffsetDateTime;

use crate::accounts::{Known, Sources};
use crate::cluster::SharedAccounts;
use crate::config::BadConfig;
use crate::exposure::Exposure;
use crate::flags::{OAuth, Options, Tls, Wrong};
use crate::paths;
use crate::program_name::CalledAs;
use crate::reload::{Files, Reload};
use crate::secret::Secret;
use crate::tls::{Certificate, Source};

/// What is known of the accounts, and the accounts as they are from then on.
pub type LoadedAccounts = (Known, Arc<dyn Current<Accounts>>);

pub struct Credentials {
    pub tokens: Arc<Shared<Tokens>>,
    pub issuer: Option<Arc<Issuer>>,
    /// What is read again when a file changes.
    pub reloads: Vec<Arc<Reload>>,
    sources: Sources,
    exposure: Exposure,
    /// `None`: those of the database.
    accounts: Option<LoadedAccounts>,
    tls: Option<Source>,
    certificate: Option<Arc<Certificate>>,
    manners: Manners,
}

impl Credentials {
    /// Reads everything there is before the data folder and the database are opened.
    pub fn read(options: &Options, called_as: CalledAs, folder: &Path, manners: Manners) -> Result<Credentials, Wrong> {
        let mut reloads = Vec::new();
        let sources = sources(options, called_as)?;
        // A node that was given no accounts takes those of the database.
        let in_database = options.cluster.is_some() && sources.are_silent().map_err(|BadConfig(what)| Wrong(what))?;
        let exposure = Exposure::of(options, called_as);
        let accounts = match in_database {
            false => Some(load_accounts(sources.clone(), exposure, &mut reloads)?),
            true => None,
        };
        exposure.allows_tokens(&options.oauth)?;
        let (tokens, issuer) = load_tokens(&options.oauth, manners, &mut reloads)?;
        if options.oauth != OAuth::Off && options.tls == Tls::Off {
            tracing::warn!("bearer tokens are taken over https only: add --tls auto or --cert");
        }
        let tls = Source::of(&options.tls, folder);
        let certificate = match &tls {
            // Our own is made in the data folder, once that is ours.
            None | Some(Source::Own(_)) => None,
            Some(source) => Some(load_certificate(source, manners, &mut reloads)?),
        };
        Ok(Credentials { tokens, issuer, reloads, sources, exposure, accounts, tls, certificate, manners })
    }

    /// The accounts that were given, or else those of the cluster's database.
    pub async fn accounts(&mut self, cluster: Option<Arc<PostgresEngine>>) -> Result<LoadedAccounts, Wrong> {
        match (self.accounts.take(), cluster) {
            (None, Some(engine)) => accounts_in_database(engine, self.sources.clone(), self.exposure).await,
            (given, _) => given.ok_or_else(|| Wrong("There are no accounts.".into())),
        }
    }

    /// The certificate, if there is to be one. Our own is made now, unless it is there already.
    pub fn certificate(&mut self) -> Result<Option<Arc<Certificate>>, Wrong> {
        if let Some(source @ Source::Own(own)) = &self.tls {
            own.prepare(OffsetDateTime::now_utc())?;
            self.certificate = Some(load_certificate(source, self.manners, &mut self.reloads)?);
        }
        Ok(self.certificate.clone())
    }

    /// The file of the certificate that we make ourselves.
    pub fn own_certificate(&self) -> Option<&Path> {
        match &self.tls {
            Some(Source::Own(own)) => Some(&own.cert),
            Some(Source::Pem { .. } | Source::Pfx { .. }) | None => None,
        }
    }
}

/// Those that all nodes of a cluster share.
async fn accounts_in_database(
    engine: Arc<PostgresEngine>,
    sources: Sources,
    exposure: Exposure,
) -> Result<LoadedAccounts, Wrong> {
    let read = move |text: &str| {
        let wrong = |BadConfig(sentence)| format!("In the database: {sentence}");
        let known = sources.with_text(text).map_err(wrong)?;
        exposure.allows_the_known_key(&known).map_err(|Wrong(sentence)| sentence)?;
        Ok(known)
    };
    let (known, accounts) = SharedAccounts::open(engine, Box::new(read)).await?;
    Ok((known, accounts))
}

fn load_accounts(
    mut sources: Sources,
    exposure: Exposure,
    reloads: &mut Vec<Arc<Reload>>,
) -> Result<LoadedAccounts, Wrong> {
    let files = Files::now([sources.file.as_path()]);
    let mut read = move || -> Result<Known, String> {
        let known = sources.load().map_err(|BadConfig(sentence)| sentence)?;
        exposure.allows_the_known_key(&known).map_err(|Wrong(sentence)| sentence)?;
        // When the file is gone later, that is no reason to let the well-known account in.
        sources.file_is_needed |= known.from_file;
        Ok(known)
    };
    let known = read().map_err(Wrong)?;
    let accounts = Arc::new(Shared::new(known.accounts.clone()));
    let shared = Arc::clone(&accounts);
    let reload = Arc::new(Reload::new(files, move || {
        shared.set(read()?.accounts);
        Ok(())
    }));
    reloads.push(Arc::clone(&reload));
    Ok((known, Arc::new(AccountsOfFile { reload, accounts })))
}

/// The accounts, with a glance at their file each time: a key that was taken away must open nothing from that moment on.
struct AccountsOfFile {
    reload: Arc<Reload>,
    accounts: Arc<Shared<Accounts>>,
}

impl Current<Accounts> for AccountsOfFile {
    fn get(&self) -> Arc<Accounts> {
        self.reload.glance();
        self.accounts.get()
    }
}

fn sources(options: &Options, called_as: CalledAs) -> Result<Sources, Wrong> {
    const VARIABLE: &str = "AZURITE_ACCOUNTS";
    let environment = match std::env::var(VARIABLE) {
        Ok(list) => Some((VARIABLE, Secret::new(list))),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(_)) => return Err(Wrong(format!("{VARIABLE} is not readable text."))),
    };
    let flag = options.accounts.clone().map(|list| ("--accounts", list));
    Ok(Sources {
        takes_loose_keys: options.azurite_compat || called_as.is_azurite(),
        lists: flag.into_iter().chain(environment).collect(),
        file: paths::config(options, called_as),
        file_is_needed: options.config.is_some(),
    })
}

type TokenSettings = (Arc<Shared<Tokens>>, Option<Arc<Issuer>>);

fn load_tokens(oauth: &OAuth, manners: Manners, reloads: &mut Vec<Arc<Reload>>) -> Result<TokenSettings, Wrong> {
    let files = match oauth {
        OAuth::Issuer(name) => return issuer(name, reloads),
        OAuth::Verified { keys, .. } => Some(keys.as_path()),
        OAuth::Off | OAuth::Basic => None,
    };
    let files = Files::now(files);
    let tokens = Arc::new(Shared::new(oauth.load(manners)?));
    if matches!(oauth, OAuth::Verified { issuer: None, .. }) {
        tracing::warn!("if the keys sign for several tenants, tokens of all of them are taken: add --oauth issuer=URL");
    }
    let (shared, oauth) = (Arc::clone(&tokens), oauth.clone());
    reloads.push(Arc::new(Reload::new(files, move || {
        shared.set(oauth.load(manners).map_err(|Wrong(sentence)| sentence)?);
        Ok(())
    })));
    Ok((tokens, None))
}

/// The keys of an issuer are fetched later. A reload fetches them again, too.
fn issuer(name: &str, reloads: &mut Vec<Arc<Reload>>) -> Result<TokenSettings, Wrong> {
    let issuer = Issuer::new(name, Client::default());
    let issuer = Arc::new(issuer.map_err(|error| Wrong(format!("--oauth issuer={name} is wrong: {error}.")))?);
    let asked = Arc::clone(&issuer);
    reloads.push(Arc::new(Reload::new(Files::now([]), move || {
        asked.ask();
        Ok(())
    })));
    Ok((issuer.tokens(), Some(issuer)))
}

fn load_certificate(
    source: &Source,
    manners: Manners,
    reloads: &mut Vec<Arc<Reload>>,
) -> Result<Arc<Certificate>, Wrong> {
    let files = Files::now(source.files());
    let certificate = Certificate::new(source.load(manners)?);
    let (shared, source) = (Arc::clone(&certificate), source.clone());
    reloads.push(Arc::new(Reload::new(files, move || {
        shared.set(source.load(manners).map_err(|Wrong(sentence)| sentence)?);
        Ok(())
    })));
    Ok(certificate)
}

# Sourced by ./run and ./test: what a fresh Debian machine may lack. Installs Debian packages when root and says
# what is missing otherwise. Defines: say, fail, need_packages, need_toolchain, built.

say() { printf '%s\n' "$*" >&2; }

fail() {
  say "$@"
  exit 1
}

# need_packages PACKAGE...: installs them, or says which are missing.
need_packages() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    fail "Missing: $*. Install them (on Debian: apt-get install $*) and call again."
  fi
  say "Installing $*"
  export DEBIAN_FRONTEND=noninteractive
  {
    apt-get install --yes --no-install-recommends "$@" ||
      { apt-get update && apt-get install --yes --no-install-recommends "$@"; }
  } </dev/null >&2 || fail "Could not install: $*"
}

# need_toolchain: cargo as new as Cargo.toml asks for, and a linker.
need_toolchain() {
  command -v cc >/dev/null || need_packages gcc libc6-dev
  command -v cargo >/dev/null || [ ! -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ] || PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
  local wanted
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  if ! command -v cargo >/dev/null && [ "$(id -u)" = 0 ] && apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
    need_packages rustup ca-certificates
    rustup default stable >&2 || true
  fi
  command -v cargo >/dev/null ||
    fail "Lazurite is written in Rust and cargo is not here. Install Rust $wanted or newer with rustup" \
      "(on Debian 13 and later: apt-get install rustup && rustup default stable) and call again."
  local found
  found=$(cargo --version </dev/null | cut -d' ' -f2)
  [ "$(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -n1)" = "$wanted" ] ||
    fail "Lazurite needs Rust $wanted or newer, this is $found. With rustup: rustup update stable"
}

# built PROFILE: where cargo leaves the server.
built() { printf '%s\n' "${CARGO_TARGET_DIR:-$PWD/target}/$1/lazurite"; }

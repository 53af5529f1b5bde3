//! A logon in the tokens of SESSION_SETUP: SPNEGO around NTLM, or NTLM alone. Pure: time and challenge are arguments.

use crate::ntlm::{Challenge, LoggedOn, NtHash, ServerNames};
use crate::spnego::{self, State, Token};
use crate::status::{Result, Status};

/// Tokens of one logon. NTLM needs two, three with a mechanism that was not the client's first.
pub const LOGON_STEPS_MAX: usize = 4;

/// A logon on its way.
#[derive(Debug)]
pub struct Logon {
    names: ServerNames,
    /// The client's list of mechanisms, and whether NTLM is its first. None: NTLM without SPNEGO.
    list: Option<Vec<u8>>,
    challenge: Option<Challenge>,
    named: bool,
    /// We asked for the list to be signed, because NTLM is not its first mechanism.
    wants_mic: bool,
    steps: usize,
}

/// What follows a token.
#[derive(Debug)]
pub enum Step {
    /// MORE_PROCESSING_REQUIRED with this token.
    Continue(Vec<u8>),
    /// The logon is done; the token belongs into the last answer.
    Done { token: Vec<u8>, logged_on: Box<LoggedOn> },
}

impl Logon {
    /// A logon before its first token.
    #[must_use]
    pub fn new(names: ServerNames) -> Logon {
        Logon { names, list: None, challenge: None, named: false, wants_mic: false, steps: 0 }
    }

    /// Whether the next token must prove who logs on.
    #[must_use]
    pub fn expects_proof(&self) -> bool {
        self.challenge.is_some()
    }

    /// Takes the next token. `challenge` is random, `time` a FILETIME; `keys` gives the hashes of an account's keys.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a token that is none or comes out of turn, LOGON_FAILURE. The logon is over.
    pub fn step(
        &mut self,
        token: &[u8],
        challenge: [u8; 8],
        time: i64,
        keys: impl FnOnce(&str) -> Vec<NtHash>,
    ) -> Result<Step> {
        self.steps += 1;
        if self.steps > LOGON_STEPS_MAX {
            return Err(Status::INVALID_PARAMETER);
        }
        match Token::decode(token)? {
            Token::Init(init) => self.init(&init, challenge, time),
            Token::Response(response) => {
                let token = response.token.ok_or(Status::INVALID_PARAMETER)?;
                if self.list.is_none() {
                    return Err(Status::INVALID_PARAMETER);
                }
                self.ntlm(token, response.mech_list_mic, challenge, time, keys)
            }
            Token::Raw(_) if self.list.is_some() => Err(Status::INVALID_PARAMETER),
            Token::Raw(token) => self.ntlm(token, None, challenge, time, keys),
        }
    }

    fn init(&mut self, init: &spnego::Init<'_>, challenge: [u8; 8], time: i64) -> Result<Step> {
        if self.list.is_some() || self.challenge.is_some() {
            return Err(Status::INVALID_PARAMETER);
        }
        let place = init.ntlm.ok_or(Status::LOGON_FAILURE)?;
        self.list = Some(init.mech_list.to_vec());
        match init.mech_token {
            // The token is one of NTLM only if NTLM is what the client likes best.
            Some(token) if place == 0 => self.challenge(token, challenge, time),
            _ => {
                self.named = true;
                self.wants_mic = place != 0;
                let state = if self.wants_mic { State::RequestMic } else { State::AcceptIncomplete };
                Ok(Step::Continue(spnego::answer(state, true, None, None)))
            }
        }
    }

    fn challenge(&mut self, token: &[u8], challenge: [u8; 8], time: i64) -> Result<Step> {
        let challenge = Challenge::new(token, &self.names, challenge, time)?;
        let message = challenge.message();
        let answer = match self.list {
            Some(_) => spnego::answer(State::AcceptIncomplete, !self.named, Some(message), None),
            None => message.to_vec(),
        };
        self.challenge = Some(challenge);
        Ok(Step::Continue(answer))
    }

    fn ntlm(
        &mut self,
        token: &[u8],
        mic: Option<&[u8]>,
        challenge: [u8; 8],
        time: i64,
        keys: impl FnOnce(&str) -> Vec<NtHash>,
    ) -> Result<Step> {
        let Some(sent) = self.challenge.take() else { return self.challenge(token, challenge, time) };
        let logged_on = sent.authenticate(token, keys)?;
        let token = match &self.list {
            None => Vec::new(),
            Some(list) => {
                if mic.map_or(self.wants_mic, |mic| !logged_on.session.verify(list, mic)) {
                    return Err(Status::LOGON_FAILURE);
                }
                // A client that signs the list wants it signed; one that does not may not know what to do with it.
                let ours = mic.map(|_| logged_on.session.sign(list));
                spnego::answer(State::AcceptCompleted, false, None, ours.as_ref().map(|mic| &mic[..]))
            }
        };
        Ok(Step::Done { token, logged_on: Box::new(logged_on) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ntlm::client::Client;
    use crate::spnego::client;

    fn names() -> ServerNames {
        ServerNames {
            computer: "LAZURITE".into(),
            domain: "AZURE".into(),
            dns_computer: "lazurite".into(),
            dns_domain: "azure".into(),
            hosts: None,
        }
    }

    fn step(logon: &mut Logon, token: &[u8]) -> Result<Step> {
        logon.step(token, [3; 8], 77, |_| vec![NtHash::of("key")])
    }

    fn token_in(step: Step) -> Vec<u8> {
        let Step::Continue(token) = step else { panic!("{step:?}") };
        match Token::decode(&token).unwrap() {
            Token::Response(response) => response.token.map(<[u8]>::to_vec).unwrap_or_default(),
            Token::Raw(token) => token.to_vec(),
            Token::Init(_) => panic!("a server answers"),
        }
    }

    /// All the ways that clients take: NTLM first or not, with a token at once or not, with the list signed or not.
    #[test]
    fn a_logon_goes_through_spnego() {
        for (others, at_once, signed) in
            [(0, true, true), (0, true, false), (0, false, true), (2, true, true), (1, false, true)]
        {
            let client = Client::new("devstore", "key");
            let mut logon = Logon::new(names());
            let first = client.negotiate();
            let (init, list) = client::init(others, at_once.then_some(&first[..]));
            let mut challenge = token_in(step(&mut logon, &init).unwrap());
            if others > 0 || !at_once {
                assert!(challenge.is_empty());
                challenge = token_in(step(&mut logon, &client::response(&first, None)).unwrap());
            }
            let (message, session_key, session) = client.authenticate(&challenge);
            let mic = session.sign_as_client(&list);
            let last = client::response(&message, signed.then_some(&mic[..]));
            let Step::Done { token, logged_on } = step(&mut logon, &last).unwrap() else { panic!("not done") };
            assert_eq!(logged_on.session_key, session_key);
            let Token::Response(response) = Token::decode(&token).unwrap() else { panic!("no answer") };
            assert_eq!(response.state, Some(State::AcceptCompleted as u8));
            assert_eq!(response.mech_list_mic.is_some(), signed);
            assert!(response.mech_list_mic.is_none_or(|mic| session.verify_as_client(&list, mic)));
        }
    }

    #[test]
    fn a_logon_goes_without_spnego() {
        let client = Client::new("devstore", "key");
        let mut logon = Logon::new(names());
        let challenge = token_in(step(&mut logon, &client.negotiate()).unwrap());
        let (message, session_key, _) = client.authenticate(&challenge);
        let Step::Done { token, logged_on } = step(&mut logon, &message).unwrap() else { panic!("not done") };
        assert_eq!((token, logged_on.session_key), (Vec::new(), session_key));
    }

    #[test]
    fn a_list_that_was_changed_on_the_way_is_refused() {
        let client = Client::new("devstore", "key");
        let mut logon = Logon::new(names());
        let (init, _) = client::init(0, Some(&client.negotiate()));
        let challenge = token_in(step(&mut logon, &init).unwrap());
        let (message, _, session) = client.authenticate(&challenge);
        let mic = session.sign_as_client(b"another list");
        let last = client::response(&message, Some(&mic));
        assert_eq!(step(&mut logon, &last).unwrap_err(), Status::LOGON_FAILURE);
    }

    #[test]
    fn a_list_that_does_not_begin_with_ntlm_must_be_signed() {
        let client = Client::new("devstore", "key");
        let mut logon = Logon::new(names());
        let (init, _) = client::init(1, None);
        step(&mut logon, &init).unwrap();
        let challenge = token_in(step(&mut logon, &client::response(&client.negotiate(), None)).unwrap());
        let (message, _, _) = client.authenticate(&challenge);
        assert_eq!(step(&mut logon, &client::response(&message, None)).unwrap_err(), Status::LOGON_FAILURE);
    }

    #[test]
    fn tokens_come_in_turn() {
        let client = Client::new("devstore", "key");
        let (init, _) = client::init(0, Some(&client.negotiate()));
        let response = client::response(&client.negotiate(), None);
        assert_eq!(step(&mut Logon::new(names()), &response).unwrap_err(), Status::INVALID_PARAMETER);
        let mut logon = Logon::new(names());
        step(&mut logon, &init).unwrap();
        assert_eq!(step(&mut logon, &init).unwrap_err(), Status::INVALID_PARAMETER);
        assert_eq!(step(&mut logon, &client.negotiate()).unwrap_err(), Status::INVALID_PARAMETER);
        assert_eq!(step(&mut Logon::new(names()), b"").unwrap_err(), Status::INVALID_PARAMETER);
        let without_ntlm = [0x60, 0x14, 6, 6, 0x2B, 6, 1, 5, 5, 2, 0xA0, 10, 0x30, 8, 0xA0, 6, 0x30, 4, 6, 2, 0x2A, 3];
        assert_eq!(step(&mut Logon::new(names()), &without_ntlm).unwrap_err(), Status::LOGON_FAILURE);
    }
}

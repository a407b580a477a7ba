//! Codes that people copy from paper or a terminal: the setup code and the recovery codes.
//!
//! A code has 100 random bits, so whoever has its hash cannot find it by trying, however fast the hash
//! is: a slow one would cost the owner time and an attacker nothing. See decision 13.

use crate::secret::{SecretHash, random};

const GROUP: usize = 5;
const LENGTH: usize = 20;
/// Crockford's: no letter that looks like a digit, and no U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// `XXXXX-XXXXX-XXXXX-XXXXX`. It has no `Debug` that shows it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Code(String);

impl Code {
    pub(crate) fn generate() -> std::io::Result<Self> {
        let letters = random::<LENGTH>()?.map(|byte| ALPHABET[usize::from(byte % 32)]);
        Ok(Self(letters.iter().map(|letter| char::from(*letter)).collect()))
    }

    /// What somebody typed: dashes, spaces and case do not matter, nor what looks alike.
    pub(crate) fn typed(text: &str) -> Option<Self> {
        let mut letters = String::new();
        for c in text.chars().filter(|c| !matches!(c, '-' | ' ')) {
            let letter = match c.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                other => other,
            };
            let known = u8::try_from(letter).is_ok_and(|letter| ALPHABET.contains(&letter));
            if !known || letters.len() == LENGTH {
                return None;
            }
            letters.push(letter);
        }
        (letters.len() == LENGTH).then_some(Self(letters))
    }

    pub(crate) fn hash(&self) -> SecretHash {
        SecretHash::of(&format!("code {}", self.0))
    }

    /// As it is shown, once.
    pub(crate) fn reveal(&self) -> String {
        let groups: Vec<&str> =
            (0..LENGTH / GROUP).map(|group| &self.0[group * GROUP..(group + 1) * GROUP]).collect();
        groups.join("-")
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Code(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_however_it_is_typed() {
        let code = Code::generate().unwrap();
        let shown = code.reveal();
        assert_eq!(shown.len(), 23);
        for typed in
            [shown.clone(), shown.to_lowercase(), shown.replace('-', " "), shown.replace('-', "")]
        {
            assert_eq!(Code::typed(&typed).as_ref(), Some(&code), "{typed}");
        }
        let alike = Code::typed("O0Iil-L1111-00000-00000").unwrap();
        assert_eq!(alike.reveal(), "00111-11111-00000-00000");
        for bad in ["", "0000", "00000-00000-00000-0000U", "00000-00000-00000-000000", "é"] {
            assert_eq!(Code::typed(bad), None, "{bad}");
        }
        assert_eq!(format!("{code:?}"), "Code(..)");
        assert_ne!(Code::generate().unwrap(), code);
    }
}

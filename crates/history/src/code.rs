//! The bytes of records: numbers in seven-bit groups, byte strings with their length before them.

/// Bytes that nothing here has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed record")]
pub struct Malformed;

#[derive(Debug, Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[derive(Debug)]
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7f);
            if shift == 63 && group > 1 {
                return Err(Malformed);
            }
            number |= group << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    pub(crate) fn small(&mut self) -> Result<u32, Malformed> {
        self.number()?.try_into().map_err(|_| Malformed)
    }

    pub(crate) fn raw(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.number()?.try_into().map_err(|_| Malformed)?;
        self.raw(length)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.raw(N)?.try_into().map_err(|_| Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_and_bytes_come_back(number: u64, bytes: Vec<u8>) {
            let mut encoder = Encoder::default();
            encoder.number(number);
            encoder.bytes(&bytes);
            let written = encoder.finish();
            let mut decoder = Decoder::new(&written);
            prop_assert_eq!(decoder.number(), Ok(number));
            prop_assert_eq!(decoder.bytes(), Ok(&bytes[..]));
            prop_assert!(decoder.is_empty());
        }
    }

    #[test]
    fn a_number_too_large_is_malformed() {
        assert_eq!(Decoder::new(&[0xff; 10]).number(), Err(Malformed));
        assert_eq!(Decoder::new(&[0xff; 3]).number(), Err(Malformed));
    }
}

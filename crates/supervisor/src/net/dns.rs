//! A name server that knows every name (RFC 1035): what it says means nothing but the name, and is
//! understood by us alone. Pure.

use super::names::Names;

pub(super) const PORT: u16 = 53;
const HEADER: usize = 12;
const LONGEST_NAME: usize = 253;
const ADDRESS: u16 = 1;
const ANY: u16 = 255;
const INTERNET: u16 = 1;
/// Programs ask again, and the one whose name it is stays the same.
const SECONDS: u32 = 60;
const NO_SUCH_NAME: u8 = 3;
const NOT_DONE: u8 = 4;

/// The answer to a question; `None` when it is none.
pub(super) fn answer(question: &[u8], names: &mut Names) -> Option<Vec<u8>> {
    let [id0, id1, flags, _, count0, count1, ..] = *question else { return None };
    if question.len() < HEADER || flags & 0x80 != 0 {
        return None;
    }
    let operation = flags & 0x78;
    if operation != 0 || [count0, count1] != [0, 1] {
        return Some(head([id0, id1], flags, NOT_DONE, [0; 4]));
    }
    let (name, end) = read_name(question)?;
    let rest = question.get(end..end + 4)?;
    let kind = u16::from_be_bytes([rest[0], rest[1]]);
    let class = u16::from_be_bytes([rest[2], rest[3]]);
    let asked = &question[HEADER..end + 4];
    let found = if class == INTERNET { names.address_of(&name) } else { None };
    let mut reply = match found {
        None => head([id0, id1], flags, NO_SUCH_NAME, [0, 1, 0, 0]),
        Some(_) if kind != ADDRESS && kind != ANY => head([id0, id1], flags, 0, [0, 1, 0, 0]),
        Some(_) => head([id0, id1], flags, 0, [0, 1, 0, 1]),
    };
    reply.extend(asked);
    if let (Some(address), ADDRESS | ANY) = (found, kind) {
        reply.extend([0xc0, 0x0c]);
        reply.extend([ADDRESS.to_be_bytes(), INTERNET.to_be_bytes()].concat());
        reply.extend(SECONDS.to_be_bytes());
        reply.extend([0, 4]);
        reply.extend(address.octets());
    }
    Some(reply)
}

/// `counts`: questions and answers.
fn head(id: [u8; 2], flags: u8, code: u8, counts: [u8; 4]) -> Vec<u8> {
    // An answer, and recursion is available; it was desired or not as before.
    let flags = [0x80 | flags & 0x79, 0x80 | code];
    [&id[..], &flags, &counts, &[0; 4]].concat()
}

/// In lower case with dots, and where it ends. A question has nothing to point back to.
fn read_name(message: &[u8]) -> Option<(String, usize)> {
    let (mut name, mut at) = (String::new(), HEADER);
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            return Some((name, at));
        }
        if length > 63 || name.len() + length > LONGEST_NAME {
            return None;
        }
        let label = message.get(at..at + length)?;
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        if !label.iter().all(plain) {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.extend(label.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut bytes = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(label.len() as u8);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend([kind.to_be_bytes(), INTERNET.to_be_bytes()].concat());
        bytes
    }

    #[test]
    fn a_name_gets_an_address_and_only_of_the_old_kind() {
        let mut names = Names::new("box", 0);
        let asked = question("Example.COM", ADDRESS);
        let reply = answer(&asked, &mut names).unwrap();
        assert_eq!(reply[..12], [7, 9, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(reply[12..asked.len()], asked[12..]);
        assert!(reply.ends_with(&[0, 4, 198, 18, 1, 0]));
        assert_eq!(names.name_of("198.18.1.0".parse().unwrap()).as_deref(), Some("example.com"));
        // The newer kind: the name is there, and has none.
        let reply = answer(&question("example.com", 28), &mut names).unwrap();
        assert_eq!(reply[2..8], [0x81, 0x80, 0, 1, 0, 0]);
        let reply = answer(&question("box", ADDRESS), &mut names).unwrap();
        assert_eq!(reply[3] & 0x0f, NO_SUCH_NAME);
    }

    #[test]
    fn what_is_no_question_gets_no_answer() {
        let mut names = Names::new("box", 0);
        let good = question("a.b", ADDRESS);
        let mut reply = good.clone();
        reply[2] = 0x81;
        assert_eq!(answer(&reply, &mut names), None);
        assert_eq!(answer(&good[..good.len() - 1], &mut names), None);
        let mut pointing = good;
        pointing[12] = 0xc0;
        assert_eq!(answer(&pointing, &mut names), None);
    }

    proptest! {
        #[test]
        fn no_question_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), tail in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut names = Names::new("box", 0);
            let _ = answer(&bytes, &mut names);
            let _ = answer(&[&[7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &tail].concat(), &mut names);
        }
    }
}

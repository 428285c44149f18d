//! Keys: from values to text, and from text to what a store keeps.
//!
//! Invariant: two different lists of formatted values of one template never give one key, and two
//! different keys are never one record.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Longest key that goes to the store as it is, in bytes, without the locker's prefix.
const PLAIN: usize = 255;
/// How much of a longer key stays readable, in bytes.
const READABLE: usize = 120;
/// Longest key there may be, in bytes.
const LONGEST: usize = 64 * 1024;
/// A SHA-256 in unpadded base32.
const DIGEST: usize = 52;

/// Appends `value` to `key` so that it can be told apart from the template's text around it.
///
/// `%`, `:`, `/`, braces, control characters and every character of `separators` (the first characters of
/// the texts between the template's placeholders) are percent-encoded as UTF-8 in upper-case hexadecimal.
pub(crate) fn push_value(key: &mut String, value: &str, separators: &str) {
    for c in value.chars() {
        if matches!(c, '%' | ':' | '/' | '{' | '}') || c.is_control() || separators.contains(c) {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a `String` cannot fail.
                let _ = write!(key, "%{byte:02X}");
            }
        } else {
            key.push(c);
        }
    }
}

/// Says what is wrong with a key, if anything.
pub(crate) fn check(key: &str) -> Result<(), &'static str> {
    if key.is_empty() {
        Err("is empty")
    } else if key.len() > LONGEST {
        Err("is longer than 64 KiB")
    } else if key.chars().any(char::is_control) {
        Err("has a control character; encode it")
    } else {
        Ok(())
    }
}

/// The key as stores keep it: as it is up to 255 bytes, otherwise its longest prefix of at most 120 bytes
/// that ends on a character boundary, `~`, and the SHA-256 of the whole key in RFC 4648 base32, lower
/// case, unpadded. A shorter key already of that shape is hashed too, so that nobody can write one that
/// meets another's.
pub(crate) fn canonical(key: &str) -> String {
    if key.len() <= PLAIN && !looks_hashed(key) {
        return key.to_owned();
    }
    let digest = data_encoding::BASE32_NOPAD.encode(&Sha256::digest(key.as_bytes()));
    format!("{}~{}", &key[..key.floor_char_boundary(READABLE)], digest.to_ascii_lowercase())
}

fn looks_hashed(key: &str) -> bool {
    key.len().checked_sub(DIGEST).is_some_and(|start| {
        start > 0
            && start - 1 <= READABLE
            && key.as_bytes()[start - 1] == b'~'
            && key.as_bytes()[start..].iter().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, separators: &str) -> String {
        let mut key = String::new();
        push_value(&mut key, text, separators);
        key
    }

    #[test]
    fn plain_values_stay_as_they_are() {
        for text in ["7", "-7", "ann@example.org", "größe", "a_b-c.d", "8f14e45f-ceea-467f"] {
            assert_eq!(value(text, ""), text);
        }
    }

    #[test]
    fn what_could_imitate_a_template_is_encoded() {
        assert_eq!(value("a:b/c{d}%", ""), "a%3Ab%2Fc%7Bd%7D%25");
        assert_eq!(value("x-y z", "- "), "x%2Dy%20z");
        assert_eq!(value("é\n\u{85}", "é"), "%C3%A9%0A%C2%85");
    }

    #[test]
    fn keys_are_checked_before_a_store_sees_them() {
        assert_eq!(check("a"), Ok(()));
        assert!(check("").is_err());
        assert!(check("a\u{7f}").is_err());
        assert!(check(&"x".repeat(LONGEST)).is_ok());
        assert!(check(&"x".repeat(LONGEST + 1)).is_err());
    }

    // Published test vectors: other programs that share a store must get the same text.
    #[test]
    fn long_keys_become_a_prefix_and_a_digest() {
        assert_eq!(canonical(&"x".repeat(255)), "x".repeat(255));
        assert_eq!(
            canonical(&"x".repeat(256)),
            format!("{}~{}", "x".repeat(120), "qxtcvtlvbrhlk233niownxffx6vml4dcmcfbvcjucdicrcjwycna")
        );
        let split = format!("{}{}", "x".repeat(119), "é".repeat(100));
        assert_eq!(
            canonical(&split),
            format!("{}~{}", "x".repeat(119), "tmngubs3aucux5xlbd3ikmjgj63raq5tmpqavx2ad53sqrbijj7q")
        );
    }

    #[test]
    fn a_key_that_looks_hashed_is_hashed() {
        let hashed = canonical(&"x".repeat(256));
        assert_ne!(canonical(&hashed), hashed);
        assert!(canonical(&hashed).len() <= READABLE + 1 + DIGEST);
    }
}

//! Protobuf wire format, borrowed and without allocation: what the hot path over millions of rows needs.
//!
//! Source: the protobuf encoding guide. Groups (wire types 3 and 4) are not used by etcd or Kubernetes.

use thiserror::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtoFault {
    #[error("protobuf message ends inside a field")]
    Truncated,
    #[error("varint is longer than 10 bytes")]
    Varint,
    #[error("wire type {0} is not used here")]
    WireType(u8),
    #[error("field number 0")]
    FieldZero,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed64(u64),
    Fixed32(u32),
}

/// Walks the fields of one message in the order of their bytes.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Fields { rest: message }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, ProtoFault> {
        let mut value = 0u64;
        for (i, byte) in self.rest.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 { ProtoFault::Truncated } else { ProtoFault::Varint })
    }

    fn take(&mut self, n: u64) -> Result<&'a [u8], ProtoFault> {
        match usize::try_from(n).ok().and_then(|n| self.rest.split_at_checked(n)) {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => Err(ProtoFault::Truncated),
        }
    }

    #[inline]
    fn field(&mut self) -> Result<(u64, Value<'a>), ProtoFault> {
        let tag = self.varint()?;
        if tag >> 3 == 0 {
            return Err(ProtoFault::FieldZero);
        }
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            2 => {
                let n = self.varint()?;
                Value::Bytes(self.take(n)?)
            }
            1 => Value::Fixed64(self.take(8)?.try_into().map(u64::from_le_bytes).unwrap_or_default()),
            5 => Value::Fixed32(self.take(4)?.try_into().map(u32::from_le_bytes).unwrap_or_default()),
            other => return Err(ProtoFault::WireType(other as u8)),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), ProtoFault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// The first field `number` that holds bytes.
pub fn bytes_field(message: &[u8], number: u64) -> Option<&[u8]> {
    Fields::new(message).map_while(Result::ok).find_map(|(n, v)| match v {
        Value::Bytes(b) if n == number => Some(b),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_all_wire_types() {
        let message = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x19, 1, 0, 0, 0, 0, 0, 0, 0, 0x25, 2, 0, 0, 0];
        let fields: Vec<_> = Fields::new(&message).collect::<Result<_, _>>().unwrap();
        assert_eq!(
            fields,
            [(1, Value::Varint(150)), (2, Value::Bytes(b"hi")), (3, Value::Fixed64(1)), (4, Value::Fixed32(2))]
        );
    }

    #[test]
    fn faults() {
        for (message, fault) in [
            (&[0x08u8][..], ProtoFault::Truncated),
            (&[0x12, 5, 1], ProtoFault::Truncated),
            (&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], ProtoFault::Varint),
            (&[0x0b], ProtoFault::WireType(3)),
            (&[0x00, 1], ProtoFault::FieldZero),
        ] {
            assert_eq!(Fields::new(message).last(), Some(Err(fault)), "{message:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for field in Fields::new(&bytes) { let _ = field; }
        }
    }
}

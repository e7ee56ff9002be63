//! As much of protobuf's wire format as the bed needs: to write Kubernetes objects, and to edit single fields of
//! etcd's answers while keeping all others. Format: protobuf.dev, "Encoding".

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// A field's value as it is on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Varint(u64),
    Fixed64(u64),
    Bytes(Bytes),
    Fixed32(u32),
}

/// A message: its fields in the order in which they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message(Vec<(u64, Value)>);

impl Message {
    /// None where the bytes are not a message.
    pub fn decode(mut bytes: Bytes) -> Option<Self> {
        let mut fields = Vec::new();
        while bytes.has_remaining() {
            let tag = varint(&mut bytes)?;
            let value = match tag & 7 {
                0 => Value::Varint(varint(&mut bytes)?),
                1 => Value::Fixed64(bytes.try_get_u64_le().ok()?),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).ok()?;
                    Value::Bytes((length <= bytes.len()).then(|| bytes.split_to(length))?)
                }
                5 => Value::Fixed32(bytes.try_get_u32_le().ok()?),
                _ => return None,
            };
            fields.push((tag >> 3, value));
        }
        Some(Message(fields))
    }

    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        for (number, value) in &self.0 {
            let kind = match value {
                Value::Varint(_) => 0,
                Value::Fixed64(_) => 1,
                Value::Bytes(_) => 2,
                Value::Fixed32(_) => 5,
            };
            put_varint(&mut out, number << 3 | kind);
            match value {
                Value::Varint(v) => put_varint(&mut out, *v),
                Value::Fixed64(v) => out.put_u64_le(*v),
                Value::Fixed32(v) => out.put_u32_le(*v),
                Value::Bytes(b) => {
                    put_varint(&mut out, b.len() as u64);
                    out.put_slice(b);
                }
            }
        }
        out.freeze()
    }

    /// The bytes of a field; empty where it is absent, as protobuf has it.
    pub fn bytes(&self, number: u64) -> Bytes {
        let found = self.0.iter().find_map(|(n, v)| match v {
            Value::Bytes(b) if *n == number => Some(b.clone()),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// The number in a field; zero where it is absent.
    pub fn number(&self, number: u64) -> u64 {
        let found = self.0.iter().find_map(|(n, v)| match v {
            Value::Varint(v) if *n == number => Some(*v),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// Replaces all values of a field by one.
    pub fn set(&mut self, number: u64, value: Value) {
        self.0.retain(|(n, _)| *n != number);
        self.0.push((number, value));
    }

    /// Adds a string, bytes or an encoded message.
    pub fn with(mut self, number: u64, bytes: impl Into<Bytes>) -> Self {
        self.0.push((number, Value::Bytes(bytes.into())));
        self
    }

    pub fn with_message(self, number: u64, message: Message) -> Self {
        self.with(number, message.encode())
    }

    pub fn with_number(mut self, number: u64, value: u64) -> Self {
        self.0.push((number, Value::Varint(value)));
        self
    }
}

fn varint(bytes: &mut Bytes) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = bytes.try_get_u8().ok()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

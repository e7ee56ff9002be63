//! The merged tree as a serde source whose errors know where the value was written.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::merge::{Item, Origin, Table, Value};
use super::nearest::nearest;
use crate::error::{Code, Error};

/// What serde found wrong; places are filled in on the way out.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(super) struct Fault {
    message: String,
    remedy: Option<String>,
    origin: Option<Origin>,
    /// Keys from the inside out.
    path: Vec<String>,
    #[cfg(test)]
    pub known: &'static [&'static str],
}

impl de::Error for Fault {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Fault {
            message: message.to_string(),
            remedy: None,
            origin: None,
            path: Vec::new(),
            #[cfg(test)]
            known: &[],
        }
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let remedy = match nearest(field, known.iter().copied()) {
            Some(key) => format!("did you mean `{key}`?"),
            None => format!("remove it; known here: {}", known.join(", ")),
        };
        let fault = Self::custom(format!("`{field}` is not a known key in this version ({version})"));
        Fault {
            remedy: Some(remedy),
            #[cfg(test)]
            known,
            ..fault
        }
    }
}

impl Fault {
    fn within(mut self, key: &str, origin: &Origin) -> Self {
        self.path.push(key.into());
        self.origin.get_or_insert_with(|| origin.clone());
        self
    }

    pub fn into_error(self) -> Error {
        let on = self.origin.map(|origin| origin.to_string()).unwrap_or_default();
        let path: Vec<String> = self.path.into_iter().rev().collect();
        let because = if path.is_empty() { self.message } else { format!("{}: {}", path.join("."), self.message) };
        let error = Error::new(Code::Config, "read configuration", on).because(because);
        match self.remedy {
            Some(remedy) => error.remedy(remedy),
            None => error,
        }
    }
}

/// Reads a table into `T`.
pub(super) fn decode<'a, T: de::Deserialize<'a>>(table: &'a Table) -> Result<T, Fault> {
    T::deserialize(TableReader(table))
}

struct TableReader<'a>(&'a Table);

impl<'de> Deserializer<'de> for TableReader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(Entries { rest: self.0.iter(), value: None })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct ItemReader<'a>(&'a Item);

impl<'de> Deserializer<'de> for ItemReader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Other(kind) => Err(de::Error::invalid_type(Unexpected::Other(kind), &visitor)),
            Value::List(items) => visitor.visit_seq(Elements(items.iter().enumerate())),
            Value::Table(table) => TableReader(table).deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(text) => {
                let reader: StrDeserializer<'_, Fault> = text.as_str().into_deserializer();
                reader.deserialize_enum(name, variants, visitor)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Entries<'a> {
    rest: std::collections::btree_map::Iter<'a, String, Item>,
    value: Option<(&'a str, &'a Item)>,
}

impl<'a> MapAccess<'a> for Entries<'a> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, item)) = self.rest.next() else { return Ok(None) };
        self.value = Some((key, item));
        let reader: StrDeserializer<'a, Fault> = key.as_str().into_deserializer();
        // The key itself is in the message; the path names the table around it.
        let at_key = |mut fault: Fault| {
            fault.origin.get_or_insert_with(|| item.origin.clone());
            fault
        };
        seed.deserialize(reader).map(Some).map_err(at_key)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        match self.value.take() {
            Some((key, item)) => seed.deserialize(ItemReader(item)).map_err(|fault| fault.within(key, &item.origin)),
            None => Err(de::Error::custom("value asked for before its key")),
        }
    }
}

struct Elements<'a>(std::iter::Enumerate<std::slice::Iter<'a, Item>>);

impl<'a> SeqAccess<'a> for Elements<'a> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((index, item)) = self.0.next() else { return Ok(None) };
        seed.deserialize(ItemReader(item)).map(Some).map_err(|fault| fault.within(&index.to_string(), &item.origin))
    }
}

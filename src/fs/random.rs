//! Random bytes from the kernel, for names and ids that must not repeat.

use std::fs::File;
use std::io::Read;

use crate::error::{Error, Result};

const SOURCE: &str = "/dev/urandom";

pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open(SOURCE)
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|e| Error::io("read random bytes from", SOURCE, e))?;
    Ok(bytes)
}

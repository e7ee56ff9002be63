//! Pages and small databases made for tests, so that faults can be seeded where real files do not have them.

use super::meta::{Meta, NO_FREELIST};

/// Keys and values in order.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

pub fn leaf_page(page_size: usize, id: u64, items: &[(&[u8], &[u8], bool)]) -> Vec<u8> {
    let elements =
        items.iter().map(|(k, v, bucket)| (k.len(), [*k, *v].concat(), (*bucket, v.len()))).collect::<Vec<_>>();
    let mut page = start(id, 2, items.len());
    let mut at = 16 + 16 * items.len();
    for (i, (ksize, data, (bucket, vsize))) in elements.iter().enumerate() {
        let pos = (at - 16 - 16 * i) as u32;
        page.extend([u32::from(*bucket), pos, *ksize as u32, *vsize as u32].map(u32::to_le_bytes).concat());
        at += data.len();
    }
    finish(page, elements.into_iter().map(|e| e.1), page_size)
}

pub fn branch_page(page_size: usize, id: u64, children: &[(&[u8], u64)]) -> Vec<u8> {
    let mut page = start(id, 1, children.len());
    let mut at = 16 + 16 * children.len();
    for (i, (key, child)) in children.iter().enumerate() {
        page.extend([(at - 16 - 16 * i) as u32, key.len() as u32].map(u32::to_le_bytes).concat());
        page.extend(child.to_le_bytes());
        at += key.len();
    }
    finish(page, children.iter().map(|c| c.0.to_vec()), page_size)
}

fn start(id: u64, flags: u16, count: usize) -> Vec<u8> {
    [&id.to_le_bytes()[..], &flags.to_le_bytes(), &(count as u16).to_le_bytes(), &[0; 4]].concat()
}

fn finish(mut page: Vec<u8>, data: impl Iterator<Item = Vec<u8>>, page_size: usize) -> Vec<u8> {
    for bytes in data {
        page.extend(bytes);
    }
    let pages = page.len().div_ceil(page_size);
    page.resize(pages * page_size, 0);
    page[12..16].copy_from_slice(&(pages as u32 - 1).to_le_bytes());
    page
}

/// Buckets with their rows, each bucket one leaf or, when `fan_out` rows are exceeded, a branch over leaves.
pub fn database(page_size: usize, fan_out: usize, buckets: &[(&[u8], Rows)]) -> Vec<u8> {
    let mut pages: Vec<u8> = Vec::new();
    let place = |pages: &mut Vec<u8>, page: Vec<u8>| pages.extend(page);
    let next = |pages: &Vec<u8>| 2 + (pages.len() / page_size) as u64;
    let mut roots: Vec<(&[u8], Vec<u8>)> = Vec::new();
    let mut sorted: Vec<_> = buckets.iter().collect();
    sorted.sort();
    for (name, rows) in sorted {
        let mut level: Vec<(Vec<u8>, u64)> = Vec::new();
        for chunk in rows.chunks(fan_out.max(1)) {
            let id = next(&pages);
            let items: Vec<_> = chunk.iter().map(|(k, v)| (&k[..], &v[..], false)).collect();
            place(&mut pages, leaf_page(page_size, id, &items));
            level.push((chunk[0].0.clone(), id));
        }
        if level.is_empty() {
            let id = next(&pages);
            place(&mut pages, leaf_page(page_size, id, &[]));
            level.push((Vec::new(), id));
        }
        while level.len() > 1 {
            let mut above = Vec::new();
            for chunk in level.chunks(fan_out.max(2)) {
                let id = next(&pages);
                let children: Vec<_> = chunk.iter().map(|(k, id)| (&k[..], *id)).collect();
                place(&mut pages, branch_page(page_size, id, &children));
                above.push((chunk[0].0.clone(), id));
            }
            level = above;
        }
        roots.push((name, [level[0].1.to_le_bytes(), [0; 8]].concat()));
    }
    let root = next(&pages);
    let items: Vec<_> = roots.iter().map(|(k, v)| (*k, &v[..], true)).collect();
    place(&mut pages, leaf_page(page_size, root, &items));
    let meta = |txid| Meta {
        page_size: page_size as u32,
        flags: 0,
        root,
        root_sequence: 0,
        freelist: NO_FREELIST,
        high_water: next(&pages),
        txid,
    };
    [meta(10).encode(0), meta(9).encode(1), pages.clone()].concat()
}

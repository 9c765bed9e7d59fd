//! From an uberblock to every block that hangs on it.

use std::collections::{BTreeMap, HashSet};

use super::dnode::{DNODE_BYTES, Dnode, kind};
use super::former::{Block, Former};
use super::intent_log::{LogBlock, MAGIC, verifier};
use super::label::{Label, START_BYTES, Uberblock};
use super::paths::{Entry, inode, paths};
use super::pointer::{Address, Pointer};
use super::{Births, packed, zap};
use crate::blocks::bytes::{ReadAt, le64, part, read};
use crate::blocks::names::Names;
use crate::blocks::spans::Spans;
use crate::blocks::what::{Pool, What};

/// Only metadata is read, and none of its blocks is larger (SPA_OLD_MAXBLOCKSIZE).
const READ_BYTES_MAX: u64 = 128 << 10;
/// SPA_GANGBLOCKSIZE: the header of a block that had to be put together of smaller ones, with
/// three pointers.
const GANG_BYTES: usize = 512;
const GANG_POINTERS: usize = 3;
/// How many transaction groups there are in a ring at most.
const RING_GROUPS: u64 = 128;

/// The object set of the whole pool.
const MOS: u64 = 0;

/// Whose blocks are walked.
#[derive(Clone, Copy, Debug)]
struct Object {
    set: u64,
    number: u64,
    kind: u8,
    block_bytes: u64,
    /// What was written until then is an earlier snapshot's.
    since: u64,
}

impl Object {
    /// What a block of it is, by its level and number.
    fn what(self, level: u8, block: u64) -> What {
        let Object { set, number, kind, .. } = self;
        let inode = inode(set, number);
        let offset_bytes = block.saturating_mul(self.block_bytes);
        match (kind, level) {
            (kind::DNODE, 0) => {
                let first = offset_bytes / DNODE_BYTES as u64;
                What::Pool(Pool::Dnodes { set, first })
            }
            (kind::FILE | kind::VOLUME, 0) => What::Data { inode, offset_bytes },
            (kind::DIRECTORY, 0) => What::Directory { inode, offset_bytes },
            (kind::FILE | kind::VOLUME | kind::DIRECTORY, _) => What::Mapping { inode },
            (kind, level) => What::Pool(Pool::Object { set, object: number, kind, level }),
        }
    }

    /// Its data lead to more: dnodes to objects, directories and the like to names.
    fn leads_on(self) -> bool {
        matches!(self.kind, kind::DNODE | kind::DIRECTORY | kind::MASTER)
    }
}

pub struct Walk<'a> {
    disk: &'a dyn ReadAt,
    label: &'a Label,
    pub spans: Spans,
    pub former: Former,
    pub births: Births,
    newest_group: u64,
    /// It is the tree of an earlier transaction group that is walked.
    is_earlier: bool,
    /// All metadata of the newest one could be read.
    is_whole: bool,
    /// Blocks that lead to others, each walked once.
    visited: HashSet<(u64, u64)>,
    /// Data sets that are to be walked: number, since when, and the pointer to their objects.
    sets: Vec<(u64, u64, Pointer)>,
    root_set: u64,
    /// The snapshot before each data set.
    snapshots: BTreeMap<u64, u64>,
    /// The root directory of each.
    roots: BTreeMap<u64, u64>,
    entries: Vec<Entry>,
}

impl<'a> Walk<'a> {
    pub fn new(disk: &'a dyn ReadAt, label: &'a Label) -> Walk<'a> {
        Walk {
            disk,
            label,
            spans: Spans::default(),
            former: Former::default(),
            births: Births::default(),
            newest_group: 0,
            is_earlier: false,
            is_whole: true,
            visited: HashSet::new(),
            sets: Vec::new(),
            root_set: 0,
            snapshots: BTreeMap::new(),
            roots: BTreeMap::new(),
            entries: Vec::new(),
        }
    }

    /// Walks the pool as of its newest uberblock. Says whether that leads anywhere.
    pub fn pool(&mut self, uberblock: &Uberblock) -> bool {
        self.newest_group = uberblock.group;
        let is_one = self.content(&uberblock.root).is_some();
        if is_one {
            self.tree(uberblock);
        }
        is_one
    }

    /// Walks what an earlier transaction group had and the newest has not.
    pub fn earlier(&mut self, uberblock: &Uberblock) {
        self.is_earlier = true;
        self.tree(uberblock);
    }

    fn tree(&mut self, uberblock: &Uberblock) {
        self.object_set(MOS, 0, &uberblock.root);
        while let Some((set, since, pointer)) = self.sets.pop() {
            self.object_set(set, since, &pointer);
        }
    }

    /// Where nothing is that was found.
    pub fn claim_free(&mut self) {
        if self.is_whole {
            let begin = self.label.base + START_BYTES;
            self.spans.claim(begin, self.label.allocatable_bytes, What::Free);
        }
    }

    /// The paths of files of the first data set, and which that is, with its snapshots.
    pub fn names(&mut self) -> (Names, Vec<u64>) {
        let mut sets = vec![self.root_set];
        while let Some(before) = self.snapshots.get(&sets[sets.len() - 1]) {
            if sets.contains(before) {
                break;
            }
            sets.push(*before);
        }
        let root = sets.iter().find_map(|set| self.roots.get(set));
        let root = root.copied().unwrap_or(0);
        (paths(&sets, root, std::mem::take(&mut self.entries)), sets)
    }

    /// An object set (`objset_phys_t` in include/sys/dmu_objset.h): dnodes of all objects, of who
    /// uses how much, and the header of its log.
    fn object_set(&mut self, set: u64, since: u64, pointer: &Pointer) {
        const LOG: usize = 512 + 16;
        if pointer.birth <= since || !self.is_new(pointer) {
            return;
        }
        self.claim(pointer, What::Pool(Pool::ObjectSet { set }));
        let Some(content) = self.content(pointer) else { return self.mark_unread() };
        let special = [(0, 0), (1024, u64::MAX), (1536, u64::MAX - 1), (2048, u64::MAX - 2)];
        for (at, number) in special {
            if let Some(dnode) = Dnode::of(part(&content, at, DNODE_BYTES)) {
                self.object(set, number, since, dnode);
            }
        }
        self.log(set, part(&content, LOG, Pointer::BYTES));
    }

    fn object(&mut self, set: u64, number: u64, since: u64, dnode: Dnode<'_>) {
        let (kind, block_bytes) = (dnode.kind(), dnode.block_bytes());
        let object = Object { set, number, kind, block_bytes, since };
        if let Some(level) = dnode.top_level() {
            for (block, bytes) in (0..).zip(dnode.pointers()) {
                self.pointer(object, bytes, level, block);
            }
        }
        if let Some(spill) = dnode.spill().and_then(Pointer::parse)
            && spill.birth > since
        {
            self.claim(&spill, What::Attributes { inode: inode(set, number) });
        }
        if set == MOS {
            self.root_set = dnode.root_set().unwrap_or(self.root_set);
            if let Some(found) = dnode.data_set() {
                self.snapshots.entry(number).or_insert(found.snapshot);
                let objects = Pointer::parse(found.objects);
                self.sets.extend(objects.map(|pointer| (number, found.since, pointer)));
            }
        }
    }

    /// A block of an object, and those below it.
    fn pointer(&mut self, object: Object, bytes: &[u8], level: u8, block: u64) {
        let Some(pointer) = Pointer::parse(bytes) else { return };
        if pointer.birth <= object.since {
            return;
        }
        if pointer.level != level {
            return self.mark_unread();
        }
        let leads_on = level > 0 || object.leads_on();
        if leads_on && !self.is_new(&pointer) {
            return;
        }
        self.claim(&pointer, object.what(level, block));
        let names = level == 0 && object.kind != kind::DNODE;
        if !leads_on || names && self.is_earlier {
            return;
        }
        let Some(content) = self.content(&pointer) else { return self.mark_unread() };
        let Some(below) = level.checked_sub(1) else { return self.data(object, &content, block) };
        let each = (content.len() / Pointer::BYTES) as u64;
        for (number, bytes) in (0..).zip(content.chunks_exact(Pointer::BYTES)) {
            self.pointer(object, bytes, below, block.saturating_mul(each).saturating_add(number));
        }
    }

    /// The content of a block that leads to more.
    fn data(&mut self, object: Object, content: &[u8], block: u64) {
        let Object { set, number, since, .. } = object;
        if object.kind != kind::DNODE {
            return self.names_in(set, number, object.kind, content);
        }
        let first = block.saturating_mul((content.len() / DNODE_BYTES) as u64);
        let mut slot = 0;
        while slot * DNODE_BYTES < content.len() {
            let dnode = Dnode::of(&content[slot * DNODE_BYTES..]);
            if let Some(dnode) = dnode {
                self.object(set, first.saturating_add(slot as u64), since, dnode);
            }
            slot += dnode.map_or(1, Dnode::slots);
        }
    }

    fn names_in(&mut self, set: u64, number: u64, kind: u8, content: &[u8]) {
        for (name, value) in zap::entries(content) {
            if kind == kind::DIRECTORY {
                self.entries.push((set, number, name, value));
            } else if name == b"ROOT" {
                self.roots.insert(set, value);
            }
        }
    }

    /// The log of a data set: blocks as long as each leads to a next one. The last was allocated,
    /// and perhaps not written.
    fn log(&mut self, set: u64, header: &[u8]) {
        let mut next = header.to_vec();
        while let Some(pointer) = Pointer::parse(&next) {
            let sequence = verifier(&next)[3];
            if !self.is_new(&pointer) {
                return;
            }
            let bytes = pointer.addresses.first().and_then(|address| self.bytes(&pointer, address));
            let block = bytes.as_deref().and_then(LogBlock::of);
            let block = block.filter(|block| block.verifier() == verifier(&next));
            let Some(block) = block else {
                self.claim(&pointer, LogBlock::unwritten(set, sequence));
                return;
            };
            self.claim(&pointer, block.what());
            for (number, offset_bytes, data) in block.pointers() {
                let what = What::Data { inode: inode(set, number), offset_bytes };
                // An older block is the file's by now, or free (`zil_claim_log_record`).
                let data = Pointer::parse(data);
                let data = data.filter(|it| self.is_earlier || it.birth > self.newest_group);
                data.into_iter().for_each(|data| self.claim(&data, what));
            }
            next = block.next().to_vec();
        }
    }

    /// It was not visited yet. A block that is within its pointer is nowhere else.
    fn is_new(&mut self, pointer: &Pointer) -> bool {
        pointer.identity().is_none_or(|identity| self.visited.insert(identity))
    }

    /// Something could not be read: blocks without a known owner may have one.
    fn mark_unread(&mut self) {
        self.is_whole = self.is_whole && self.is_earlier;
    }

    fn claim(&mut self, pointer: &Pointer, what: What) {
        for address in &pointer.addresses {
            self.claim_address(pointer, address, what, 0);
        }
    }

    fn claim_address(&mut self, pointer: &Pointer, address: &Address, what: What, depth: u8) {
        let Some(place) = self.place(address) else { return self.mark_unread() };
        if address.is_gang {
            return self.gang(place, address, what, depth);
        }
        let length = address.allocated_bytes;
        if self.is_earlier {
            let [piece] = self.spans.pieces(place, length)[..] else { return };
            if piece.what != what {
                let (physical_bytes, checksum) = (pointer.physical_bytes, pointer.checksum);
                let block = Block { physical_bytes, allocated_bytes: length, checksum, what };
                self.former.add(place, block);
            }
            return;
        }
        self.spans.claim(place, length, what);
        if pointer.birth.saturating_add(RING_GROUPS) > self.newest_group {
            self.births.add(place, length, pointer.birth);
        }
    }

    /// A block in parts: the header, and what it leads to.
    fn gang(&mut self, place: u64, address: &Address, what: What, depth: u8) {
        const DEPTH_MAX: u8 = 3;
        let header = read(self.disk, place, GANG_BYTES).ok().filter(|_| depth < DEPTH_MAX);
        let Some(header) = header.filter(|bytes| le64(bytes, GANG_BYTES - 40) == MAGIC) else {
            return self.mark_unread();
        };
        if !self.is_earlier {
            let length = (GANG_BYTES as u64).next_multiple_of(1 << self.label.shift);
            self.spans.claim(place, length.min(address.allocated_bytes), What::Pool(Pool::Gang));
        }
        let mut skip = 0;
        for bytes in header.chunks_exact(Pointer::BYTES).take(GANG_POINTERS) {
            let Some(pointer) = Pointer::parse(bytes) else { continue };
            let what = what.part(skip, pointer.physical_bytes);
            skip += pointer.physical_bytes;
            for address in &pointer.addresses {
                self.claim_address(&pointer, address, what, depth + 1);
            }
        }
    }

    /// Where on the disk an address is.
    fn place(&self, address: &Address) -> Option<u64> {
        let end = address.offset.checked_add(address.allocated_bytes)?;
        let is_on_disk = address.vdev == self.label.vdev && end <= self.label.allocatable_bytes;
        is_on_disk.then(|| self.label.base + START_BYTES + address.offset)
    }

    /// What is written at an address.
    fn bytes(&self, pointer: &Pointer, address: &Address) -> Option<Vec<u8>> {
        let length = pointer.physical_bytes;
        let is_simple = !address.is_gang && length <= READ_BYTES_MAX;
        let place = self.place(address).filter(|_| is_simple)?;
        read(self.disk, place, length as usize).ok()
    }

    /// What a block holds, from the first of its places where it is whole. By a checksum that is
    /// not known only the newest tree is believed.
    fn content(&self, pointer: &Pointer) -> Option<Vec<u8>> {
        let logical_bytes = usize::try_from(pointer.logical_bytes).ok()?;
        if pointer.logical_bytes > READ_BYTES_MAX {
            return None;
        }
        if let Some(inline) = &pointer.inline {
            return packed::unpack(pointer.compression, inline, logical_bytes);
        }
        pointer.addresses.iter().find_map(|address| {
            let bytes = self.bytes(pointer, address)?;
            let fits = pointer.checksum.fits(&bytes).unwrap_or(!self.is_earlier);
            packed::unpack(pointer.compression, &bytes, logical_bytes).filter(|_| fits)
        })
    }
}

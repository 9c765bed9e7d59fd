//! Which file takes what from which: no circle, and no arrow against the wings.
//!
//! An arrow goes from a file to the file that *defines* what it names. Re-exports are looked
//! through and are no arrows themselves: the face of a folder (`mod.rs`) may hand out what its
//! files define, and these may name what it defines. Methods are not seen: what has one was named
//! where it came from.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

use super::Source;

/// A module by its names from the crate's root: `["place", "vm"]`.
type Name = Vec<String>;

/// What a `use` brings into a module.
struct Import {
    path: Name,
    /// By which name; none for all of a module.
    alias: Option<String>,
    public: bool,
}

/// What a file defines, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Function,
    /// Types, traits, constants and macros.
    Word,
}

/// A file as a module.
struct Module {
    file: String,
    defines: BTreeMap<String, Kind>,
    imports: Vec<Import>,
    /// Every path that its code has, outside of `use`.
    paths: BTreeSet<Name>,
}

/// The modules of one crate.
struct Crate(BTreeMap<Name, Module>);

/// From file to file, with the names that are taken; those of functions end with `()`.
pub type Arrows = BTreeMap<(String, String), BTreeSet<String>>;

/// `core/src/judge/audit/mod.rs` is `["judge", "audit"]` of `core`.
fn name_of(path: &str) -> Option<Name> {
    let (_, inside) = path.split_once("/src/")?;
    let inside = inside.strip_suffix(".rs")?;
    let mut names: Name = inside.split('/').map(String::from).collect();
    if names.last().is_some_and(|last| last == "mod")
        || (names.len() == 1 && ["lib", "main"].contains(&names[0].as_str()))
    {
        names.pop();
    }
    Some(names)
}

fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.require_list().map(|list| list.tokens.to_string());
        attribute.path().is_ident("cfg") && text.is_ok_and(|text| text == "test")
    })
}

fn attributes_of(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Fn(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Const(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        _ => &[],
    }
}

/// Collects what a file defines, imports and names.
#[derive(Default)]
struct Reader {
    defines: BTreeMap<String, Kind>,
    imports: Vec<Import>,
    paths: BTreeSet<Name>,
    depth: usize,
}

impl Reader {
    fn import(&mut self, tree: &UseTree, before: &[String], public: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &with(&path.ident), public),
            UseTree::Name(name) if name.ident == "self" => {
                let alias = before.last().cloned();
                self.imports.push(Import { path: before.to_vec(), alias, public });
            }
            UseTree::Name(name) => {
                let alias = Some(name.ident.to_string());
                self.imports.push(Import { path: with(&name.ident), alias, public });
            }
            UseTree::Rename(name) => {
                let alias = Some(name.rename.to_string());
                self.imports.push(Import { path: with(&name.ident), alias, public });
            }
            UseTree::Glob(_) => {
                self.imports.push(Import { path: before.to_vec(), alias: None, public });
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, before, public));
            }
        }
    }

    fn define(&mut self, item: &Item) {
        let name = match item {
            Item::Const(it) => &it.ident,
            Item::Enum(it) => &it.ident,
            Item::Fn(it) => &it.sig.ident,
            Item::Static(it) => &it.ident,
            Item::Struct(it) => &it.ident,
            Item::Trait(it) => &it.ident,
            Item::Type(it) => &it.ident,
            Item::Union(it) => &it.ident,
            Item::Macro(it) => match &it.ident {
                Some(name) => name,
                None => return,
            },
            _ => return,
        };
        let kind = if matches!(item, Item::Fn(_)) { Kind::Function } else { Kind::Word };
        self.defines.insert(name.to_string(), kind);
    }

    /// Inside macros there are only tokens: names with `::` between them are paths there, too.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Name::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) if colons == 2 => {
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.end_of(&mut path);
                    colons = 0;
                    match other {
                        TokenTree::Ident(ident) => path.push(ident.to_string()),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        _ => {}
                    }
                }
            }
        }
        self.end_of(&mut path);
    }

    fn end_of(&mut self, path: &mut Name) {
        if !path.is_empty() {
            self.paths.insert(std::mem::take(path));
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test_only(attributes_of(item)) {
            return;
        }
        if self.depth == 0 {
            self.define(item);
        }
        self.depth += 1;
        visit::visit_item(self, item);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let public = !matches!(item.vis, Visibility::Inherited);
        self.import(&item.tree, &[], public);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.insert(path.segments.iter().map(|it| it.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, makro: &'ast syn::Macro) {
        self.visit_path(&makro.path);
        self.tokens(makro.tokens.clone());
    }
}

impl Crate {
    /// The product's files of the crate that is called so.
    fn read(name: &str, sources: &[Source]) -> Crate {
        let folder = format!("{name}/src/");
        let its = sources.iter().filter(|source| source.is_in(&folder) && !source.is_test());
        let modules = its.filter_map(|source| {
            let file = syn::parse_file(&source.text).unwrap_or_else(|error| {
                panic!("{}: {error}", source.path);
            });
            let mut reader = Reader::default();
            reader.visit_file(&file);
            let Reader { defines, imports, paths, .. } = reader;
            let module = Module { file: source.path.clone(), defines, imports, paths };
            Some((name_of(&source.path)?, module))
        });
        Crate(modules.collect())
    }

    /// The module that defines what `path` names, as the code in `from` reads it, and what that is;
    /// none where it is another crate's, or a module itself.
    fn resolve(&self, from: &[String], path: &[String], depth: u32) -> Option<(Name, Kind)> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.descend(Vec::new(), rest, depth),
            "self" => self.descend(from.to_vec(), rest, depth),
            "super" => {
                let above = from[..from.len().checked_sub(1)?].to_vec();
                match rest.first().is_some_and(|next| next == "super") {
                    true => self.resolve(&above, rest, depth),
                    false => self.descend(above, rest, depth),
                }
            }
            _ => self.descend(from.to_vec(), path, depth),
        }
    }

    fn descend(&self, at: Name, path: &[String], depth: u32) -> Option<(Name, Kind)> {
        let (first, rest) = path.split_first()?;
        let module = self.0.get(&at).filter(|_| depth > 0)?;
        let child = [at.as_slice(), std::slice::from_ref(first)].concat();
        if self.0.contains_key(&child) {
            return self.descend(child, rest, depth);
        }
        if let Some(kind) = module.defines.get(first) {
            return Some((at, *kind));
        }
        let named = |it: &&Import| it.alias.as_ref() == Some(first);
        for import in module.imports.iter().filter(named) {
            let whole = [import.path.as_slice(), rest].concat();
            if let Some(target) = self.resolve(&at, &whole, depth - 1) {
                return Some(target);
            }
        }
        module.imports.iter().filter(|import| import.alias.is_none()).find_map(|import| {
            let whole = [import.path.as_slice(), path].concat();
            self.resolve(&at, &whole, depth - 1)
        })
    }

    fn arrows(&self) -> Arrows {
        const DEEPEST: u32 = 8;
        let mut arrows = Arrows::new();
        for (name, module) in &self.0 {
            let imported = module.imports.iter().filter(|import| !import.public);
            for path in module.paths.iter().chain(imported.map(|import| &import.path)) {
                let Some((at, kind)) = self.resolve(name, path, DEEPEST) else { continue };
                let target = &self.0[&at].file;
                if *target != module.file {
                    let taken = arrows.entry((module.file.clone(), target.clone())).or_default();
                    let call = if kind == Kind::Function { CALL } else { "" };
                    taken.insert(path.join("::") + call);
                }
            }
        }
        arrows
    }
}

/// Ends the name of a function among those that are taken.
const CALL: &str = "()";

/// Every arrow within the crate of that name.
pub fn arrows(name: &str, sources: &[Source]) -> Arrows {
    Crate::read(name, sources).arrows()
}

/// The types, traits and constants of a folder's `mod.rs` are the common vocabulary of its files:
/// that these name them is no arrow that could close a circle. To call its functions is one.
fn is_vocabulary(from: &str, to: &str, names: &BTreeSet<String>) -> bool {
    let folder = to.strip_suffix("mod.rs").or_else(|| to.strip_suffix("lib.rs"));
    folder.is_some_and(|folder| from.starts_with(folder))
        && !names.iter().any(|name| name.ends_with(CALL))
}

/// The arrows that lie on a circle.
pub fn circles(arrows: &Arrows) -> Vec<String> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let counted = arrows.iter().filter(|((from, to), names)| !is_vocabulary(from, to, names));
    for ((from, to), _) in counted {
        next.entry(from).or_default().push(to);
    }
    let leads_to = |from: &str, goal: &str| {
        let (mut seen, mut ahead) = (BTreeSet::new(), vec![from]);
        while let Some(at) = ahead.pop() {
            if at == goal {
                return true;
            }
            let new = next.get(at).into_iter().flatten().filter(|to| seen.insert(**to));
            ahead.extend(new);
        }
        false
    };
    let mut found = Vec::new();
    for (from, to) in next.iter().flat_map(|(from, all)| all.iter().map(move |to| (*from, *to))) {
        if leads_to(to, from) {
            let names = arrows[&(from.to_string(), to.to_string())].iter();
            let names: Vec<&str> = names.map(String::as_str).collect();
            found.push(format!("{from} -> {to}: {}", names.join(", ")));
        }
    }
    found
}

/// The room on top in which a file is: `place` of `host/src/place/vm/mod.rs`.
pub fn room(path: &str) -> &str {
    let inside = path.split_once("/src/").map_or(path, |(_, inside)| inside);
    inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
}

/// The same arrows between the rooms on top.
pub fn between_rooms(arrows: &Arrows) -> Arrows {
    let mut rooms = Arrows::new();
    for ((from, to), names) in arrows.iter().filter(|((from, to), _)| room(from) != room(to)) {
        let between = rooms.entry((room(from).to_string(), room(to).to_string())).or_default();
        between.extend(names.iter().map(|name| format!("{from}: {name}")));
    }
    rooms
}

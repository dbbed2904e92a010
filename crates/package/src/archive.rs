//! Static libraries.

use std::io::Cursor;

use ar_archive_writer::{
    ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, ObjectReader, write_archive_to_stream,
};

/// Reads the symbols of objects for the index.
static READER: ObjectReader = DEFAULT_OBJECT_READER;

/// A static library of named objects, reproducible: without times and owners.
///
/// # Errors
/// If an object cannot be read.
pub(crate) fn archive(members: &[(String, &[u8])]) -> std::io::Result<Vec<u8>> {
    let members = members.iter();
    let members: Vec<NewArchiveMember<'_>> = members
        .map(|(name, object)| NewArchiveMember::new(object, &READER, name.clone()))
        .collect();
    let mut archive = Cursor::new(Vec::new());
    write_archive_to_stream(&mut archive, &members, ArchiveKind::Gnu, false, None)?;
    Ok(archive.into_inner())
}

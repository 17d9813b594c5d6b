//! Deletes the metadata file that a dropped view's pointer named last, unless the view's `gc.enabled` says not to.
//!
//! Earlier files stay, as the reference catalogs leave them. The file is looked up in the view's history, so a commit
//! that came between the order and the drop is no trouble. Metadata is a client's word: only a file inside the view's
//! own location goes, and only while no other table or view lives in, above or below that.

use super::Error;
use crate::{
    app::App,
    catalog::{self, files, location, views::DroppedView, warehouses},
    db::{self, tables::Except},
    iceberg::view::ViewMetadata,
};
use object_store::ObjectStoreExt;

/// # Errors
/// When storage or database cannot be reached: start over.
pub async fn run(app: &App, order: &DroppedView) -> Result<(), Error> {
    let warehouse = warehouses::named(app, &order.warehouse).await?;
    let Some(last) = db::tables::history(&app.db, order.view).await?.pop() else { return Ok(()) };
    let file = last.metadata_location;
    let json = match files::read(&warehouse, &file).await {
        Ok(json) => json,
        Err(catalog::Error::MetadataMissing(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let view = ViewMetadata::parse(&json).map_err(|error| Error::Order(error.to_string()))?;
    if !view.collects_garbage() || !location::is_within(&file, view.location()) {
        return Ok(());
    }
    // The view may be registered again by now, or something else in its place.
    if db::tables::location_taken(&app.db, view.location(), Except::Nobody).await? {
        return Ok(());
    }
    let Some(path) = warehouse.object(&file) else { return Ok(()) };
    match warehouse.objects.delete(&path).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

use super::{create, make_namespace, make_table, namespace, new_table, warehouse};
use crate::{
    db::{
        Db, Page,
        namespaces::{
            Changed, Create, Drop, Properties, create as create_namespace, drop, list, load, update_properties,
        },
        tables::Kind,
        testing::on_both,
    },
    iceberg::ident::{LEVELS_MAX, NAME_CHARS_MAX, Namespace},
};
use uuid::Uuid;

on_both!(
    a_namespace_keeps_its_properties,
    a_child_needs_its_parent,
    names_differ_by_case_and_by_level_boundary,
    the_longest_path_fits,
    children_are_listed_in_byte_order_and_direct_only,
    pages_follow_each_other_without_gap_or_overlap,
    properties_are_removed_then_set,
    concurrent_property_updates_all_stay,
    a_namespace_with_children_or_tables_is_kept,
    warehouses_do_not_share_namespaces,
);

fn properties(pairs: &[(&str, &str)]) -> Properties {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

async fn names(db: &Db, warehouse: Uuid, parent: Option<&str>, page: &Page) -> Option<Vec<String>> {
    list(db, warehouse, parent.map(namespace).as_ref(), page).await.expect("lists")
}

async fn a_namespace_keeps_its_properties(db: Db) {
    let warehouse = warehouse(&db).await;
    let given = properties(&[("owner", "ann"), ("", "empty key"), ("ключ", "\"\\\n\u{1}😀")]);
    let made = create_namespace(&db, warehouse, &namespace("a"), &given).await.unwrap();
    let Create::Done(row) = made else { panic!("{made:?}") };
    assert_eq!(row.properties, given);
    assert_eq!(load(&db, warehouse, &namespace("a")).await.unwrap(), Some(row));
    assert_eq!(create_namespace(&db, warehouse, &namespace("a"), &properties(&[])).await.unwrap(), Create::Exists);
    assert_eq!(load(&db, warehouse, &namespace("b")).await.unwrap(), None);
}

async fn a_child_needs_its_parent(db: Db) {
    let warehouse = warehouse(&db).await;
    let (child, properties) = (namespace("a.b"), Properties::new());
    let create = || create_namespace(&db, warehouse, &child, &properties);
    assert_eq!(create().await.unwrap(), Create::NoParent);
    make_namespace(&db, warehouse, "a").await;
    assert!(matches!(create().await.unwrap(), Create::Done(_)));
    assert_eq!(create().await.unwrap(), Create::Exists);
}

async fn names_differ_by_case_and_by_level_boundary(db: Db) {
    let warehouse = warehouse(&db).await;
    for path in ["a", "A", "ab", "a.b", "A.b", "a.B", "á", "a\u{301}"] {
        make_namespace(&db, warehouse, path).await;
    }
    let dotted = Namespace::new(vec!["a.b".into()]).unwrap();
    assert_eq!(load(&db, warehouse, &dotted).await.unwrap(), None, "one level with a dot is another path");
}

async fn the_longest_path_fits(db: Db) {
    let warehouse = warehouse(&db).await;
    let levels = vec!["😀".repeat(NAME_CHARS_MAX); LEVELS_MAX];
    for depth in 1..=LEVELS_MAX {
        let namespace = Namespace::new(levels[..depth].to_vec()).unwrap();
        let made = create_namespace(&db, warehouse, &namespace, &Properties::new()).await.unwrap();
        assert!(matches!(made, Create::Done(_)), "depth {depth}");
    }
    let deepest = Namespace::new(levels).unwrap();
    let listed = list(&db, warehouse, deepest.parent().as_ref(), &Page::default()).await.unwrap().expect("parent");
    assert_eq!(listed, deepest.levels()[..1]);
}

async fn children_are_listed_in_byte_order_and_direct_only(db: Db) {
    let warehouse = warehouse(&db).await;
    for path in ["b", "a", "B", "é", "\u{ffff}", "😀", "a-", "a.x", "a.x.y"] {
        make_namespace(&db, warehouse, path).await;
    }
    let all = Page::default();
    let top = names(&db, warehouse, None, &all).await.unwrap();
    assert_eq!(top, ["B", "a", "a-", "b", "é", "\u{ffff}", "😀"]);
    assert_eq!(names(&db, warehouse, Some("a"), &all).await.unwrap(), ["x"]);
    assert_eq!(names(&db, warehouse, Some("b"), &all).await, Some(vec![]));
    assert_eq!(names(&db, warehouse, Some("nowhere"), &all).await, None);
    let past_the_end = Page { after: Some("zzz".into()), limit: Some(5) };
    assert_eq!(names(&db, warehouse, Some("a"), &past_the_end).await, Some(vec![]));
}

async fn pages_follow_each_other_without_gap_or_overlap(db: Db) {
    let warehouse = warehouse(&db).await;
    make_namespace(&db, warehouse, "p").await;
    let expected = (0..25).map(|number| format!("n{number:02}")).collect::<Vec<_>>();
    for name in expected.iter().rev() {
        make_namespace(&db, warehouse, name).await;
        make_namespace(&db, warehouse, &format!("p.{name}")).await;
    }
    for parent in [None, Some("p")] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = names(&db, warehouse, parent, &Page { after, limit: Some(4) }).await.unwrap();
            assert!(page.len() <= 4);
            // What comes before the page's end neither shifts nor repeats what follows.
            make_namespace(&db, warehouse, &format!("{}a{}", parent.map_or("", |_| "p."), seen.len())).await;
            after = page.last().cloned();
            seen.extend(page);
            if after.is_none() {
                break;
            }
        }
        seen.retain(|name| name != "p");
        assert_eq!(seen, expected, "{parent:?}");
    }
}

async fn properties_are_removed_then_set(db: Db) {
    let warehouse = warehouse(&db).await;
    let path = namespace("a");
    let removals = ["y", "gone", "x", "x"].map(str::to_owned);
    let updates = properties(&[("z", "2"), ("new", "3")]);
    let update = || update_properties(&db, warehouse, &path, &removals, &updates);
    assert_eq!(update().await.unwrap(), None);
    create_namespace(&db, warehouse, &path, &properties(&[("x", "1"), ("y", "1"), ("z", "1"), ("k", "1")]))
        .await
        .unwrap();
    let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    let changed = Changed { updated: owned(&["new", "z"]), removed: owned(&["x", "y"]), missing: owned(&["gone"]) };
    assert_eq!(update().await.unwrap(), Some(changed));
    let row = load(&db, warehouse, &path).await.unwrap().expect("still there");
    assert_eq!(row.properties, properties(&[("k", "1"), ("new", "3"), ("z", "2")]));
}

async fn concurrent_property_updates_all_stay(db: Db) {
    let warehouse = warehouse(&db).await;
    make_namespace(&db, warehouse, "a").await;
    let updates = (0..16).map(|number| {
        let db = db.clone();
        tokio::spawn(async move {
            let updates = properties(&[(&format!("k{number}"), "v")]);
            update_properties(&db, warehouse, &namespace("a"), &[], &updates).await.unwrap().expect("there")
        })
    });
    for update in updates.collect::<Vec<_>>() {
        update.await.unwrap();
    }
    assert_eq!(load(&db, warehouse, &namespace("a")).await.unwrap().expect("there").properties.len(), 16);
}

async fn a_namespace_with_children_or_tables_is_kept(db: Db) {
    let warehouse = warehouse(&db).await;
    let remove = async |path: &str| drop(&db, warehouse, &namespace(path)).await.unwrap();
    assert_eq!(remove("a").await, Drop::Missing);
    make_namespace(&db, warehouse, "a").await;
    make_namespace(&db, warehouse, "a.b").await;
    make_table(&db, warehouse, "a.b.t").await;
    assert_eq!(remove("a").await, Drop::NotEmpty);
    assert_eq!(remove("a.b").await, Drop::NotEmpty);
    assert!(load(&db, warehouse, &namespace("a")).await.unwrap().is_some());
    let ident = super::ident("a.b.t");
    crate::db::tables::drop(&db, warehouse, &ident, Kind::Table, None).await.unwrap().expect("dropped");
    assert_eq!(remove("a.b").await, Drop::Done);
    assert_eq!(remove("a").await, Drop::Done);
    assert_eq!(remove("a").await, Drop::Missing);
}

async fn warehouses_do_not_share_namespaces(db: Db) {
    let (one, other) = (warehouse(&db).await, warehouse(&db).await);
    make_namespace(&db, one, "a").await;
    assert_eq!(load(&db, other, &namespace("a")).await.unwrap(), None);
    let made = create(&db, other, "a.t", &new_table(Kind::Table)).await;
    assert_eq!(made, crate::db::tables::Create::NoNamespace);
    make_namespace(&db, other, "a").await;
    make_table(&db, one, "a.t").await;
    assert_eq!(super::load(&db, other, "a.t").await, None);
    assert_eq!(drop(&db, other, &namespace("a")).await.unwrap(), Drop::Done);
}

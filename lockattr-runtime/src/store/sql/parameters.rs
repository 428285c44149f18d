//! Which of a URL's parameters are ours.

/// The URL without them, and those whose names begin with `lockattr`.
///
/// The driver passes over a parameter that it does not know; what is meant for us and misspelt shall not be lost
/// like that.
pub(in crate::store) fn parameters(url: &str) -> Result<(String, Vec<(String, String)>), String> {
    let Some((place, query)) = url.split_once('?') else { return Ok((url.to_owned(), Vec::new())) };
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some((name, value)) if name.starts_with("lockattr") => {
                ours.push((name.to_owned(), value.to_owned()));
            }
            Some(_) => others.push(pair),
            None => return Err("each part of the URL after its `?` is a name, `=` and a value".to_owned()),
        }
    }
    let rest = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    Ok((format!("{place}{rest}"), ours))
}

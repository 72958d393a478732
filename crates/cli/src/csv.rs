//! Lines and tables of comma-separated values, by the crate of that name. Line breaks within fields become spaces, so that a line is
//! a row, and a file that was cut ends with at most one that is not whole.

use csv::{ReaderBuilder, StringRecord, Trim, WriterBuilder};

/// One line, ending with a newline.
pub fn line<S: AsRef<str>>(fields: &[S]) -> String {
    let mut writer = WriterBuilder::new().from_writer(Vec::new());
    let fields = fields.iter().map(|field| field.as_ref().replace(['\n', '\r'], " "));
    writer.write_record(fields).expect("memory takes everything");
    let bytes = writer.into_inner().expect("memory takes everything");
    String::from_utf8(bytes).expect("text was written")
}

/// The fields of a line, blanks around them removed; none if it has no field.
pub fn fields(line: &str) -> Option<Vec<String>> {
    records(line).next()?.ok().map(|record| record.iter().map(String::from).collect())
}

fn records(text: &str) -> impl Iterator<Item = csv::Result<StringRecord>> {
    let reader = ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(text.as_bytes());
    reader.into_records()
}

/// A table whose cells are found by the names of their columns.
pub struct Csv {
    head: Vec<String>,
    lines: Vec<(usize, Vec<String>)>,
}

/// One line of a table.
pub struct Line<'a> {
    head: &'a [String],
    /// From 1, for messages.
    number: usize,
    cells: &'a [String],
}

impl Csv {
    pub fn parse(text: &str) -> Result<Csv, String> {
        let cells = |record: &StringRecord| record.iter().map(String::from).collect::<Vec<_>>();
        // A record is said to begin where the one before it ends; empty lines come in between.
        let number = |record: &StringRecord| {
            let place = record.position().map_or((0, 0), |place| (place.line() as usize, place.byte() as usize));
            let skipped = text[place.1..].lines().take_while(|line| line.trim().is_empty()).count();
            place.0 + skipped
        };
        let blank = |record: &StringRecord| record.iter().all(str::is_empty);
        let records = records(text).collect::<csv::Result<Vec<_>>>().map_err(|error| error.to_string())?;
        let mut records = records.iter().filter(|record| !blank(record));
        let head = records.next().map(cells).ok_or("the table is empty")?;
        Ok(Csv { head, lines: records.map(|record| (number(record), cells(record))).collect() })
    }

    pub fn has(&self, column: &str) -> bool {
        self.head.iter().any(|name| name == column)
    }

    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.lines.iter().map(|(number, cells)| Line { head: &self.head, number: *number, cells })
    }
}

impl Line<'_> {
    /// The cell of a column; empty where there is none.
    pub fn text(&self, column: &str) -> &str {
        let place = self.head.iter().position(|name| name == column);
        place.and_then(|place| self.cells.get(place)).map_or("", String::as_str)
    }

    /// A number, or nothing where the cell is empty.
    pub fn count(&self, column: &str) -> Result<Option<u64>, String> {
        match self.text(column) {
            "" => Ok(None),
            text => {
                text.parse().map(Some).map_err(|_| format!("line {}: `{text}` is no count of {column}", self.number))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let row = ["a", "", "MFU:25%,LRU:75%", "say \"no\"", "two\nlines"];
        let written = line(&row);
        assert_eq!(written, "a,,\"MFU:25%,LRU:75%\",\"say \"\"no\"\"\",two lines\n");
        assert_eq!(fields(written.trim_end()).unwrap(), ["a", "", "MFU:25%,LRU:75%", "say \"no\"", "two lines"]);
        assert_eq!(fields(""), None);
    }

    #[test]
    fn columns_go_by_name_and_cells_may_be_quoted_or_missing() {
        let csv = Csv::parse("a, b ,c\n1,\"x, y\",3\n\nten\n").unwrap();
        let lines: Vec<Line> = csv.lines().collect();
        assert_eq!((lines[0].text("b"), lines[0].count("c")), ("x, y", Ok(Some(3))));
        assert_eq!((lines[1].text("b"), lines[1].count("c"), lines[1].text("d")), ("", Ok(None), ""));
        assert!(lines[1].count("a").unwrap_err().starts_with("line 4: `ten`"));
        assert!(csv.has("b") && !csv.has("x") && Csv::parse("\n").is_err());
    }
}

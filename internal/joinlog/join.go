package joinlog

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/internal/served"
)

// Label says how the outcomes of a row within the window become its label.
type Label string

// The labels. A row without an outcome has the label 0.
const (
	Max   Label = "max"   // the greatest value
	Sum   Label = "sum"   // the sum of the values
	First Label = "first" // the value of the earliest outcome
)

// Options say what is joined. One goroutine.
type Options struct {
	Served      string // a folder with files *.jsonl of the log
	Outcomes    string // a file of events
	Impressions string // likewise: the rows that were seen; "": nobody knows
	Window      time.Duration
	Label       Label
	Until       time.Time // when the outcomes end; zero: with the latest event
	Out         string    // *.csv or *.jsonl; a file of that name is replaced at the end
	Memory      int       // bytes for records, before they go to disk
}

// Counts say what a join has read, left out and written. A copy; any goroutine.
type Counts struct {
	Lines        int `json:"lines"`          // of the log
	Torn         int `json:"torn_lines"`     // left out: without a line end, at the end of a file
	Malformed    int `json:"malformed"`      // left out: not lines of the log
	OtherVersion int `json:"other_versions"` // left out: of another version of the format
	Undelivered  int `json:"undelivered"`    // left out: nobody took the answer
	Traffic      int `json:"traffic"`        // left out: tests, bots, internal requests
	Absent       int `json:"rows_absent"`    // rows left out: the line does not have what was scored of them
	Twice        int `json:"twice"`          // rows left out: their line stands in the log again

	Outcomes        int `json:"outcomes"`
	SameOutcomes    int `json:"same_outcomes"`        // left out: the event_id was there before for the row
	OutsideWindow   int `json:"outside_window"`       // left out: before the answer, or after the window
	OutcomesAlone   int `json:"outcomes_without_row"` // left out: no line that counts has the request and the row
	Impressions     int `json:"impressions,omitzero"` //
	ImpressionAlone int `json:"impressions_alone"`    // likewise

	WindowOpen int `json:"rows_window_open"` // rows left out: their window ends after the outcomes do
	Unseen     int `json:"rows_unseen"`      // rows left out: without an impression
	Rows       int `json:"rows"`             // written
	Positives  int `json:"positives"`        // of these, with a label other than 0
	Groups     int `json:"groups"`           // answers that they are from

	FirstMalformed string `json:"first_malformed,omitzero"` // file, line and what is wrong
}

// columnsMax bounds the columns of all lines together.
const columnsMax = 10_000

// sep stands between the fields of a record. No field has it, nor a line end: they are JSON, or digits.
const sep = "\x00"

// The kinds of records, in the order in which those of a row come.
const (
	kindServed, kindImpression, kindOutcome = "0", "1", "2"
)

// join is a join under way.
type join struct {
	Options
	ctx     context.Context
	counts  Counts
	columns map[string]int // of all lines, with "made." before those of made, by the order in which they came
	events  *fileio.Sorter // request, row, kind, and what else the kind has
	rows    *fileio.Sorter // to write: time, request, output, position, label, user, name, probability, id, values
	latest  time.Time      // of the events
	steps   int
}

// Run joins, and writes Options.Out. After an error there is no new file.
func Run(ctx context.Context, o Options) (Counts, error) {
	sorter := func() *fileio.Sorter { return fileio.NewSorter(filepath.Dir(o.Out), o.Memory/2, bytes.Compare) }
	j := &join{Options: o, ctx: ctx, columns: map[string]int{}, events: sorter(), rows: sorter()}
	defer j.events.Close()
	defer j.rows.Close()
	err := j.run()
	return j.counts, err
}

func (j *join) run() error {
	files, err := served.LogFiles(j.Served)
	if err != nil {
		return err
	}
	for _, path := range files {
		if err := read(path, func(in io.Reader) error { return j.readServed(path, in) }); err != nil {
			return err
		}
	}
	c := &j.counts
	if err := j.readEvents(j.Outcomes, kindOutcome, &c.Outcomes); err != nil {
		return err
	}
	if j.Impressions != "" {
		if err := j.readEvents(j.Impressions, kindImpression, &c.Impressions); err != nil {
			return err
		}
	}
	if j.Until.IsZero() {
		j.Until = j.latest
	}
	if err := j.match(); err != nil {
		return err
	}
	if c.Outcomes > 0 && c.OutcomesAlone == c.Outcomes {
		return errors.New("no outcome has its row in the log: outcomes have the engine_request_id and an id of an answer")
	}
	return fileio.ReplaceBy(j.Out, j.write)
}

// read calls do with a file, whose name its error then has.
func read(path string, do func(in io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := do(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// step returns an error if the join is to end. Each loop over lines or records calls it.
func (j *join) step() error {
	if j.steps++; j.steps%1000 == 0 && j.ctx.Err() != nil {
		return context.Cause(j.ctx)
	}
	return nil
}

// addTo makes a record of its fields.
func addTo(s *fileio.Sorter, fields []string) error { return s.Add([]byte(strings.Join(fields, sep))) }

// readServed makes records of a file of the log.
func (j *join) readServed(path string, in io.Reader) error {
	lines := fileio.NewLineReader(in, served.LineBytesMax)
	for c := &j.counts; ; {
		text, whole, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err = cmp.Or(err, j.step()); err != nil {
			return err
		}
		if c.Lines++; !whole {
			c.Torn++
			continue
		}
		l, err := parseServed(text)
		switch {
		case err != nil:
			c.Malformed++
			c.FirstMalformed = cmp.Or(c.FirstMalformed, fmt.Sprintf("%s, line %d: %v", path, lines.Number(), err))
		case l.Version != served.Version:
			c.OtherVersion++
		case !*l.Delivered:
			c.Undelivered++
		case l.Traffic != "":
			c.Traffic++
		default:
			if err := j.addServed(&l); err != nil {
				return err
			}
		}
	}
}

// addServed makes a record of each row of a line: request, row, kind, time, output, position, user, name, probability, id, values.
func (j *join) addServed(l *servedLine) error {
	for i, o := range l.Outputs {
		columns := map[int][]jsontext.Value{} // by their places in j.columns
		for name, values := range o.Columns {
			columns[j.column(name)] = values
		}
		for name, values := range o.Made {
			columns[j.column(madePrefix+name)] = values
		}
		if len(j.columns) > columnsMax {
			return fmt.Errorf("the lines have more than %d different columns", columnsMax)
		}
		for k, id := range o.IDs {
			if slices.Contains(o.Absent, k) {
				j.counts.Absent++
				continue
			}
			fields := []string{
				quoted(l.Request), quoted(o.texts[k]), kindServed, micros(l.at), fmt.Sprintf("%04d", i), fmt.Sprintf("%08d", k),
				string(l.User), quoted(o.Name), string(l.Probability), string(id),
			}
			before := len(fields)
			fields = append(fields, make([]string, len(j.columns))...)
			for place, values := range columns {
				fields[before+place] = string(values[k])
			}
			if err := addTo(j.events, fields); err != nil {
				return err
			}
		}
	}
	return nil
}

// madePrefix begins the names of columns of made, and columnsPrefix those of columns that are called as one of leading.
const (
	madePrefix    = "made."
	columnsPrefix = "columns."
)

// column returns the place of a column.
func (j *join) column(name string) int {
	place, known := j.columns[name]
	if !known {
		place = len(j.columns)
		j.columns[name] = place
	}
	return place
}

// readEvents makes records of a file of events.
func (j *join) readEvents(path, kind string, count *int) error {
	return read(path, func(in io.Reader) error {
		return readEvents(path, in, func(e *event) error {
			*count++
			fields, at, err := e.record(kind)
			if err = cmp.Or(err, j.step()); err != nil {
				return err
			}
			if at.After(j.latest) {
				j.latest = at
			}
			return addTo(j.events, fields)
		})
	})
}

// match brings the records of each row together, and makes j.rows.
func (j *join) match() error {
	var m matched
	err := j.events.Each(func(record []byte) error {
		f := strings.Split(string(record), sep)
		if err := j.step(); err != nil {
			return err
		}
		if f[0] != m.request || f[1] != m.row {
			if err := j.end(&m); err != nil {
				return err
			}
			m = matched{request: f[0], row: f[1]}
		}
		switch f[2] {
		case kindServed:
			if n := len(m.served); n > 0 && slices.Equal(m.served[n-1][3:6], f[3:6]) {
				j.counts.Twice++
				return nil
			}
			m.served = append(m.served, f)
		case kindImpression:
			if m.seen = true; len(m.served) == 0 {
				j.counts.ImpressionAlone++
			}
		case kindOutcome:
			j.outcome(&m, f[3], f[4], f[5])
		}
		return nil
	})
	return cmp.Or(err, j.end(&m))
}

// matched are the records of one row of one request.
type matched struct {
	request, row string
	served       [][]string // as records; several if outputs share the row
	seen         bool       // there is an impression
	event        string     // the id of the last outcome; "": it has none
	label        float64
	first        string // the time of the earliest outcome that counts; "": there is none
}

// timeOf returns the time of a text that micros has made.
func timeOf(text string) time.Time {
	at, _ := strconv.ParseInt(text, 10, 64)
	return time.UnixMicro(at).UTC()
}

// outcome takes an outcome of the row.
func (j *join) outcome(m *matched, id, at, number string) {
	same := id != "" && id == m.event
	m.event = id
	value, _ := strconv.ParseFloat(number, 64) // It is our own.
	switch {
	case same:
		j.counts.SameOutcomes++
	case len(m.served) == 0:
		j.counts.OutcomesAlone++
	case at < m.served[0][3] || timeOf(at).Sub(timeOf(m.served[0][3])) > j.Window:
		j.counts.OutsideWindow++
	case m.first == "":
		m.label, m.first = value, at
	case j.Label == Sum:
		m.label += value
	case j.Label == Max:
		m.label = max(m.label, value)
	case at < m.first:
		m.label, m.first = value, at
	}
}

// end passes on the row whose records have all come.
func (j *join) end(m *matched) error {
	for _, f := range m.served {
		switch {
		case timeOf(f[3]).Add(j.Window).After(j.Until):
			j.counts.WindowOpen++
		case j.Impressions != "" && !m.seen:
			j.counts.Unseen++
		default:
			fields := append([]string{f[3], f[0], f[4], f[5], strconv.FormatFloat(m.label, 'g', -1, 64)}, f[6:]...)
			if err := addTo(j.rows, fields); err != nil {
				return err
			}
		}
	}
	return nil
}

// leading are the names of what stands before the columns.
var leading = [...]string{"label", "group", "engine_request_id", "time", "user_id", "probability", "output", "position", "id"}

// order returns the names of what is written, and which column each is that is not one of leading: by name, those of made behind the others.
func (j *join) order() (names []string, order []int) {
	names = slices.Collect(maps.Keys(j.columns))
	last := func(name string) int { return strings.Count(name[:min(len(name), len(madePrefix))], madePrefix) }
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(last(a)-last(b), strings.Compare(a, b)) })
	for i, name := range names {
		order = append(order, j.columns[name])
		if slices.Contains(leading[:], name) { // A feature must not stand in for the label.
			names[i] = columnsPrefix + name
		}
	}
	return append(slices.Clone(leading[:]), names...), order
}

// write writes the rows in order: by time, then answer by answer, each as it was shown.
func (j *join) write(to *bufio.Writer) error {
	names, order := j.order()
	emit, flush := emitJSON(to, names), to.Flush
	if filepath.Ext(j.Out) == ".csv" {
		emit, flush = emitCSV(to, names)
	}
	last, c := "", &j.counts
	err := j.rows.Each(func(record []byte) error {
		f := strings.Split(string(record), sep)
		if f[1] != last {
			last = f[1]
			c.Groups++
		}
		if c.Rows++; f[4] != "0" {
			c.Positives++
		}
		position, _ := strconv.Atoi(f[3]) // It is our own.
		values := []string{f[4], strconv.Itoa(c.Groups - 1), f[1], quoted(timeOf(f[0]).Format("2006-01-02T15:04:05.000000Z")), f[5], f[7], f[6], strconv.Itoa(position), f[8]}
		of := f[9:]
		for _, i := range order {
			if i < len(of) {
				values = append(values, of[i])
			} else {
				values = append(values, "") // The column came later than this line.
			}
		}
		return cmp.Or(emit(values), j.step())
	})
	return cmp.Or(err, flush())
}

// emitCSV returns what writes one row as a line of CSV. The header is written.
func emitCSV(to *bufio.Writer, names []string) (emit func(values []string) error, flush func() error) {
	out := csv.NewWriter(to)
	emit = func(values []string) error {
		for i, v := range values {
			values[i] = cell(v)
		}
		return out.Write(values)
	}
	_ = out.Write(names) // flush reports an error.
	return emit, func() error {
		out.Flush()
		return out.Error()
	}
}

// emitJSON returns what writes one row as a line of JSON.
func emitJSON(to io.Writer, names []string) func(values []string) error {
	var line []byte
	return func(values []string) error {
		line = append(line[:0], '{')
		for i, v := range values {
			line = append(jsondoc.AppendName(line, i, names[i]), cmp.Or(v, "null")...)
		}
		_, err := to.Write(append(line, "}\n"...))
		return err
	}
}

// cell returns a value of JSON as CSV has it: a null is empty, a string has no quotes of JSON, a boolean is 1 or 0, and sets and
// vectors stay JSON.
func cell(v string) string {
	switch v {
	case "null", "":
		return ""
	case "true":
		return "1"
	case "false":
		return "0"
	}
	if v[0] == '"' {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(text)
		}
	}
	return v
}

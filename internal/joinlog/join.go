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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/fileio"
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

// sep stands between the fields of a record. No field has it: they are JSON, or digits.
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
	events  sorter         // request, row, kind, …
	latest  time.Time      // of the events
}

// Run joins, and writes Options.Out. After an error there is no new file.
func Run(ctx context.Context, o Options) (Counts, error) {
	folder, err := os.MkdirTemp(filepath.Dir(o.Out), ".join-")
	if err != nil {
		return Counts{}, err
	}
	defer os.RemoveAll(folder)
	j := &join{Options: o, ctx: ctx, columns: map[string]int{}, events: sorter{folder: folder, max: o.Memory / 2}}
	if err := j.readServed(); err != nil {
		return j.counts, err
	}
	if err := j.readFile(o.Outcomes, kindOutcome, &j.counts.Outcomes); err != nil {
		return j.counts, err
	}
	if o.Impressions != "" {
		if err := j.readFile(o.Impressions, kindImpression, &j.counts.Impressions); err != nil {
			return j.counts, err
		}
	}
	if j.Until.IsZero() {
		j.Until = j.latest
	}
	rows := sorter{folder: folder, max: o.Memory / 2}
	if err := j.match(&rows); err != nil {
		return j.counts, err
	}
	if c := &j.counts; c.Outcomes > 0 && c.OutcomesAlone == c.Outcomes {
		return *c, errors.New("no outcome has its row in the log: outcomes have the engine_request_id and an id of an answer")
	}
	return j.counts, j.write(&rows)
}

// readServed makes records of the lines of the log.
func (j *join) readServed() error {
	files, err := served.LogFiles(j.Served)
	if err != nil {
		return err
	}
	for _, path := range files {
		if err := j.readServedFile(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (j *join) readServedFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := fileio.NewLineReader(f, served.LineBytesMax)
	for c := &j.counts; ; {
		text, whole, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if c.Lines++; c.Lines%1000 == 0 && j.ctx.Err() != nil {
			return context.Cause(j.ctx)
		}
		if !whole {
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

// addServed makes a record of each row of a line: request, row, kind, time, output, position, user, name, probability, values.
func (j *join) addServed(l *servedLine) error {
	request, at := quoted(l.Request), micros(l.at)
	for i, o := range l.Outputs {
		for name := range o.Columns {
			j.column(name)
		}
		for name := range o.Made {
			j.column(madePrefix + name)
		}
		if len(j.columns) > columnsMax {
			return fmt.Errorf("the lines have more than %d different columns", columnsMax)
		}
		for k, id := range o.IDs {
			if slices.Contains(o.Absent, k) {
				j.counts.Absent++
				continue
			}
			text, _ := plainText(id) // It was checked.
			values := make([]string, len(j.columns))
			for name, column := range o.Columns {
				values[j.columns[name]] = string(column[k])
			}
			for name, column := range o.Made {
				values[j.columns[madePrefix+name]] = string(column[k])
			}
			fields := append([]string{
				request, quoted(text), kindServed, at, fmt.Sprintf("%04d", i), fmt.Sprintf("%08d", k),
				string(l.User), quoted(o.Name), string(l.Probability), string(id),
			}, values...)
			if err := j.events.add([]byte(strings.Join(fields, sep))); err != nil {
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

func (j *join) column(name string) {
	if _, known := j.columns[name]; !known {
		j.columns[name] = len(j.columns)
	}
}

// micros returns a time as text that sorts as times do.
func micros(t time.Time) string { return fmt.Sprintf("%020d", t.UnixMicro()) }

// readFile makes records of a file of events: request, row, kind, event id, time, value.
func (j *join) readFile(path, kind string, count *int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = readEvents(path, f, kind == kindOutcome, func(e event) error {
		if *count++; *count%1000 == 0 && j.ctx.Err() != nil {
			return context.Cause(j.ctx)
		}
		if e.at.After(j.latest) {
			j.latest = e.at
		}
		return j.events.add([]byte(strings.Join([]string{e.request, e.row, kind, e.id, micros(e.at),
			strconv.FormatFloat(e.value, 'g', -1, 64)}, sep)))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// match brings the records of each row together, and makes records of the rows to write: time, request, output, position,
// label, and the rest of the served record.
func (j *join) match(rows *sorter) error {
	var of []byte // request and row of the records that are being matched
	var m matched
	done := 0
	err := j.events.each(func(record []byte) error {
		if done++; done%1000 == 0 && j.ctx.Err() != nil {
			return context.Cause(j.ctx)
		}
		f := strings.Split(string(record), sep)
		if key := f[0] + sep + f[1]; key != string(of) {
			if err := j.end(&m, rows); err != nil {
				return err
			}
			of, m = []byte(key), matched{}
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
			j.outcome(&m, f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return j.end(&m, rows)
}

// matched are the records of one row of one request.
type matched struct {
	served [][]string // as records; several if outputs share the row
	seen   bool       // there is an impression
	event  string     // the id of the last outcome; "": it has none
	label  float64
	acted  bool   // there is an outcome
	first  string // the time of the earliest one
}

// outcome takes an outcome of the row.
func (j *join) outcome(m *matched, f []string) {
	id, text := f[3], f[4]
	if id != "" && id == m.event {
		j.counts.SameOutcomes++
		return
	}
	m.event = id
	if len(m.served) == 0 {
		j.counts.OutcomesAlone++
		return
	}
	served, _ := strconv.ParseInt(m.served[0][3], 10, 64) // They are our own.
	at, _ := strconv.ParseInt(text, 10, 64)
	value, _ := strconv.ParseFloat(f[5], 64)
	if at < served || at > served+j.Window.Microseconds() {
		j.counts.OutsideWindow++
		return
	}
	switch {
	case !m.acted:
		m.label, m.first = value, text
	case j.Label == Sum:
		m.label += value
	case j.Label == Max:
		m.label = max(m.label, value)
	case text < m.first:
		m.label, m.first = value, text
	}
	m.acted = true
}

// end passes on the row whose records have all come.
func (j *join) end(m *matched, rows *sorter) error {
	for _, f := range m.served {
		at, _ := strconv.ParseInt(f[3], 10, 64)
		switch {
		case at+j.Window.Microseconds() > j.Until.UnixMicro():
			j.counts.WindowOpen++
		case j.Impressions != "" && !m.seen:
			j.counts.Unseen++
		default:
			label := strconv.FormatFloat(m.label, 'g', -1, 64)
			out := append([]string{f[3], f[0], f[4], f[5], label}, f[6:]...)
			if err := rows.add([]byte(strings.Join(out, sep))); err != nil {
				return err
			}
		}
	}
	return nil
}

// leading are the names of what stands before the columns.
var leading = [...]string{"label", "group", "engine_request_id", "time", "user_id", "probability", "output", "position", "id"}

// order returns the columns as they are written, by name, those of made behind the others, and which column each is.
func (j *join) order() (names []string, order []int) {
	for name := range j.columns {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if made := strings.HasPrefix(a, madePrefix); made != strings.HasPrefix(b, madePrefix) {
			if made {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		order = append(order, j.columns[name])
		if slices.Contains(leading[:], name) { // A feature must not stand in for the label.
			names[i] = columnsPrefix + name
		}
	}
	return append(slices.Clone(leading[:]), names...), order
}

// write writes the file: first beside its place, so that a reader sees all of it or the former one.
func (j *join) write(rows *sorter) error {
	f, err := os.CreateTemp(filepath.Dir(j.Out), "."+filepath.Base(j.Out)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(j.writeTo(f, rows), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), j.Out)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// writeTo writes the rows in order: by time, then answer by answer, each as it was shown.
func (j *join) writeTo(f io.Writer, rows *sorter) error {
	names, order := j.order()
	buffer := bufio.NewWriterSize(f, 64<<10)
	emit, flush := emitJSON(buffer, names), buffer.Flush
	if filepath.Ext(j.Out) == ".csv" {
		emit, flush = emitCSV(buffer, names)
	}
	last := ""
	err := rows.each(func(record []byte) error {
		c := &j.counts
		if c.Rows++; c.Rows%1000 == 0 && j.ctx.Err() != nil {
			return context.Cause(j.ctx)
		}
		f := strings.Split(string(record), sep)
		if f[1] != last {
			last = f[1]
			c.Groups++
		}
		if f[4] != "0" {
			c.Positives++
		}
		at, _ := strconv.ParseInt(f[0], 10, 64)
		position, _ := strconv.Atoi(f[3])
		time := time.UnixMicro(at).UTC().Format("2006-01-02T15:04:05.000000Z")
		values := []string{f[4], strconv.Itoa(c.Groups - 1), f[1], quoted(time), f[5], f[7], f[6], strconv.Itoa(position), f[8]}
		of := f[9:]
		for _, i := range order {
			if i < len(of) {
				values = append(values, of[i])
			} else {
				values = append(values, "") // The column came later than this line.
			}
		}
		return emit(values)
	})
	if err != nil {
		return err
	}
	return flush()
}

// emitCSV returns what writes one row as a line of CSV. The header is written.
func emitCSV(to *bufio.Writer, names []string) (emit func(values []string) error, flush func() error) {
	out := csv.NewWriter(to)
	_ = out.Write(names) // Flush reports an error.
	emit = func(values []string) error {
		for i, v := range values {
			values[i] = cell(v)
		}
		return out.Write(values)
	}
	return emit, func() error {
		out.Flush()
		return errors.Join(out.Error(), to.Flush())
	}
}

// emitJSON returns what writes one row as a line of JSON.
func emitJSON(to io.Writer, names []string) func(values []string) error {
	var line bytes.Buffer
	return func(values []string) error {
		line.Reset()
		for i, v := range values {
			line.WriteByte(",{"[min(i, 1)^1])
			line.WriteString(quoted(names[i]) + ":" + cmp.Or(v, "null"))
		}
		line.WriteString("}\n")
		_, err := to.Write(line.Bytes())
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

package joinlog

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/served"
)

// shown is a row as a test knows it.
type shown struct {
	request, id string
	at          int // seconds
	price       any
	score       float64
	output, pos int
	skipped     bool // its line does not count
}

// acted is an event as a test knows it.
type acted struct {
	request, id, event string
	at                 int
	value              float64
}

const begin = 1_760_000_000

func instant(second int) string { return time.Unix(int64(begin+second), 0).UTC().Format(time.RFC3339) }

// A world is a log and what users did, written to files.
type world struct {
	folder        string
	rows          []shown
	outcomes      []acted
	seen          []acted
	linesPerCause map[string]int
}

func newWorld(t *testing.T, rng *rand.Rand) *world {
	w := &world{folder: t.TempDir(), linesPerCause: map[string]int{}}
	require.NoError(t, os.Mkdir(filepath.Join(w.folder, "served"), 0o755))
	var files [3]bytes.Buffer
	for r := range 40 {
		request, at := fmt.Sprintf("req\"%d", r), rng.IntN(10_000)
		members := map[string]any{"served_log": 1, "engine_request_id": request, "time": instant(at), "user_id": "u-1", "delivered": true, "probability": 0.5, "new": []int{1}}
		cause, before := "", len(w.rows)
		switch rng.IntN(12) {
		case 0:
			members["delivered"], cause = false, "undelivered"
		case 1:
			members["traffic"], cause = "test", "traffic"
		case 2:
			members["served_log"], cause = 2, "version"
		case 3:
			members["time"], cause = "yesterday", "malformed"
		}
		if cause != "" {
			w.linesPerCause[cause]++
		}
		var outputs []any
		for o := range 1 + rng.IntN(2) {
			var ids, prices, scores []any
			absent := []int{}
			for pos := range rng.IntN(6) {
				id := rng.IntN(8) + 100*o // A row may stand in a list twice.
				row := shown{request, fmt.Sprint(id), at, nil, float64(id) / 3, o, pos, cause != ""}
				if rng.IntN(6) == 0 {
					absent, row.skipped = append(absent, pos), true
					if cause == "" {
						w.linesPerCause["absent"]++
					}
				} else if rng.IntN(3) > 0 {
					row.price = rng.NormFloat64()
				}
				w.rows = append(w.rows, row)
				ids, prices, scores = append(ids, id), append(prices, row.price), append(scores, row.score)
				if rng.IntN(2) == 0 {
					w.seen = append(w.seen, acted{request: request, id: fmt.Sprint(id)})
				}
				for range rng.IntN(3) {
					w.outcomes = append(w.outcomes, acted{request, fmt.Sprint(id), []string{"", "e1", "e2"}[rng.IntN(3)], at + rng.IntN(300) - 50, float64(rng.IntN(5))})
				}
			}
			if ids == nil {
				ids, prices, scores = []any{}, []any{}, []any{}
			}
			outputs = append(outputs, map[string]any{"name": []string{"home", "deals"}[o], "ids": ids, "absent": absent,
				"columns": map[string]any{"price": prices}, "made": map[string]any{"score": scores}})
		}
		members["outputs"] = outputs
		line, err := json.Marshal(members)
		require.NoError(t, err)
		to := &files[rng.IntN(3)]
		to.Write(append(line, '\n'))
		if cause == "" && rng.IntN(10) == 0 {
			for _, r := range w.rows[before:] {
				if r.skipped {
					w.linesPerCause["absent"]++
				} else {
					w.linesPerCause["twice"]++
				}
			}
			to.Write(append(line, '\n'))
		}
	}
	w.outcomes = append(w.outcomes, acted{"nobody", "1", "", 11_000, 1})
	files[0].WriteString(`{"served_log":1,"engine_request`) // a kill
	for i := range files {
		require.NoError(t, os.WriteFile(filepath.Join(w.folder, "served", fmt.Sprintf("served-%d.jsonl", i)), files[i].Bytes(), 0o644))
	}
	rng.Shuffle(len(w.outcomes), func(i, j int) { w.outcomes[i], w.outcomes[j] = w.outcomes[j], w.outcomes[i] })
	w.write(t, "outcomes", w.outcomes)
	w.write(t, "seen", w.seen)
	return w
}

// write writes events in both formats.
func (w *world) write(t *testing.T, name string, events []acted) {
	lines, table := new(bytes.Buffer), new(bytes.Buffer)
	out := csv.NewWriter(table)
	require.NoError(t, out.Write([]string{"value", "event_id", "engine_request_id", "id", "time", "page"}))
	for _, e := range events {
		require.NoError(t, out.Write([]string{fmt.Sprint(e.value), e.event, e.request, e.id, fmt.Sprint(begin + e.at), "x"}))
		line, err := json.Marshal(map[string]any{"value": e.value, "event_id": e.event, "engine_request_id": e.request, "id": e.id, "time": instant(e.at)})
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	out.Flush()
	require.NoError(t, os.WriteFile(filepath.Join(w.folder, name+".csv"), table.Bytes(), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(w.folder, name+".jsonl"), lines.Bytes(), 0o644))
}

// join joins naively: a loop over all events for each row.
func (w *world) join(label Label, window int, seen bool) (rows []string) {
	for _, r := range w.rows {
		if r.skipped || r.at+window > 11_000 {
			continue
		}
		if seen && !slices.ContainsFunc(w.seen, func(e acted) bool { return e.request == r.request && e.id == r.id }) {
			continue
		}
		value, first, any := 0.0, 0, false
		known := map[string]bool{}
		for _, e := range w.outcomes {
			if e.request != r.request || e.id != r.id || known[e.event] {
				continue
			}
			known[e.event] = e.event != ""
			if e.at < r.at || e.at > r.at+window {
				continue
			}
			switch {
			case !any:
				value, first = e.value, e.at
			case label == Sum:
				value += e.value
			case label == Max:
				value = max(value, e.value)
			case e.at < first:
				value, first = e.value, e.at
			}
			any = true
		}
		rows = append(rows, fmt.Sprint(value, " ", r.request, " ", r.id, " ", r.output, " ", r.pos, " ", r.price, " ", r.score))
	}
	return rows
}

// TestJoin compares with the naive join, with all in memory and with much on disk, in both formats. The outcomes of one event id are
// equal there, since which of them counts is nobody's promise.
func TestJoin(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t, rng)
		for i := range w.outcomes { // equal ids: equal events
			for _, e := range w.outcomes[:i] {
				if e.request == w.outcomes[i].request && e.id == w.outcomes[i].id && (e.event == w.outcomes[i].event || e.at == w.outcomes[i].at) {
					w.outcomes[i].at, w.outcomes[i].value = e.at, e.value
				}
			}
		}
		w.write(t, "outcomes", w.outcomes)
		o := Options{Served: filepath.Join(w.folder, "served"), Window: time.Duration(50+rng.IntN(300)) * time.Second,
			Label: []Label{Max, Sum, First}[rng.IntN(3)], Memory: []int{2 << 10, 1 << 20}[rng.IntN(2)]}
		ext := []string{".csv", ".jsonl"}[rng.IntN(2)]
		o.Outcomes = filepath.Join(w.folder, "outcomes"+ext)
		if rng.IntN(2) == 0 {
			o.Impressions = filepath.Join(w.folder, "seen"+ext)
			w.write(t, "seen", append(w.seen, acted{request: "nobody", id: "1"}))
		}
		o.Out = filepath.Join(w.folder, "train.jsonl")
		c, err := Run(t.Context(), o)
		require.NoError(t, err)
		assert.Equal(t, 1, c.Torn)
		assert.Equal(t, withoutZeros(w.linesPerCause), withoutZeros(map[string]int{"undelivered": c.Undelivered, "traffic": c.Traffic, "version": c.OtherVersion, "malformed": c.Malformed, "twice": c.Twice, "absent": c.Absent}))
		assert.Equal(t, len(w.outcomes), c.Outcomes)
		assert.GreaterOrEqual(t, c.OutcomesAlone, 1)
		text, err := os.ReadFile(o.Out)
		require.NoError(t, err)
		var got []string
		var times []string
		groups := map[string]float64{}
		for line := range strings.Lines(string(text)) {
			var r map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			got = append(got, fmt.Sprint(r["label"], " ", r["engine_request_id"], " ", r["id"], " ", slices.Index([]string{"home", "deals"}, r["output"].(string)), " ", r["position"], " ", r["price"], " ", r["made.score"]))
			times = append(times, r["time"].(string))
			request := r["engine_request_id"].(string)
			if group, known := groups[request]; known {
				require.Equal(t, group, r["group"], "the rows of an answer follow each other")
				require.EqualValues(t, len(groups)-1, group)
			}
			groups[request] = r["group"].(float64)
		}
		assert.True(t, slices.IsSorted(times))
		assert.Equal(t, []int{len(got), len(groups)}, []int{c.Rows, c.Groups})
		want := w.join(o.Label, int(o.Window/time.Second), o.Impressions != "")
		assert.ElementsMatch(t, want, got, "seed %d", seed)

		o.Out = filepath.Join(w.folder, "train.csv")
		_, err = Run(t.Context(), o)
		require.NoError(t, err)
		f, err := os.Open(o.Out)
		require.NoError(t, err)
		table, err := csv.NewReader(f).ReadAll()
		require.NoError(t, errors.Join(err, f.Close()))
		require.Len(t, table, len(got)+1)
		assert.Equal(t, "label,group,engine_request_id,time,user_id,probability,output,position,id,price,made.score", strings.Join(table[0], ","))
		for i, row := range table[1:] {
			price := row[9]
			if price == "" {
				price = "<nil>"
			}
			assert.Equal(t, got[i], fmt.Sprint(row[0], " ", row[2], " ", row[8], " ", slices.Index([]string{"home", "deals"}, row[6]), " ", row[7], " ", price, " ", row[10]))
			assert.Equal(t, "u-1", row[4])
		}
		left, err := filepath.Glob(filepath.Join(w.folder, ".*"))
		require.NoError(t, err)
		assert.Empty(t, left, "no file for a while stays")
	}
}

// A column of the log that is called as one of the join's own does not take its place.
func TestColumnsOfTheLogDoNotHideTheLabel(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	write("served/a.jsonl", `{"served_log":1,"engine_request_id":"r","time":"`+instant(0)+`","user_id":7,"delivered":true,"probability":1,`+
		`"outputs":[{"ids":[5],"columns":{"label":[9],"price":[2.5]},"made":{"position":[3]}}]}`+"\n")
	outcomes := write("clicks.jsonl", `{"engine_request_id":"r","id":5,"time":"`+instant(1)+`"}`+"\n")
	for out, want := range map[string]string{
		"t.csv": "label,group,engine_request_id,time,user_id,probability,output,position,id,columns.label,price,made.position\n1,0,r,2025-10-09T08:53:20.000000Z,7,1,,0,5,9,2.5,3\n",
		"t.jsonl": `{"label":1,"group":0,"engine_request_id":"r","time":"2025-10-09T08:53:20.000000Z","user_id":7,"probability":1,"output":"","position":0,"id":5,` +
			`"columns.label":9,"price":2.5,"made.position":3}` + "\n",
	} {
		_, err := Run(t.Context(), Options{Served: filepath.Join(folder, "served"), Outcomes: outcomes, Window: time.Hour, Label: Max,
			Until: time.Unix(begin+7200, 0), Out: filepath.Join(folder, out), Memory: 1 << 20})
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(folder, out))
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

func withoutZeros(counts map[string]int) map[string]int {
	for name, n := range counts {
		if n == 0 {
			delete(counts, name)
		}
	}
	return counts
}

// What cannot be joined rightly is refused, and the former file stays.
func TestRefusals(t *testing.T) {
	const served = `{"served_log":1,"engine_request_id":"r","time":"2026-11-27T22:30:00Z","user_id":7,"delivered":true,"probability":1,"outputs":[{"ids":[1],"columns":{"price":[2]}}]}` + "\n"
	for _, c := range []struct{ name, outcomes, want string }{
		{"a.csv", "", "the file is empty"},
		{"a.csv", "engine_request_id,item\nr,1\n", "line 2: id is missing"},
		{"a.csv", "engine_request_id,id\nr,1\n", "line 2: time is missing"},
		{"a.csv", "id,id\n", `the column "id" stands there twice`},
		{"a.csv", "engine_request_id,id,time\nr,1,noon\n", `line 2: time is "noon"`},
		{"a.csv", "engine_request_id,id,time,value\nr,1,5,NaN\n", `line 2: value is "NaN"`},
		{"a.csv", "engine_request_id,id,time\nr,1\n", "wrong number of fields"},
		{"a.csv", "engine_request_id,id,time\nx,1,1795818700\n", "no outcome has its row in the log"},
		{"a.jsonl", `{"engine_request_id":"r","id":{},"time":1}`, `"/id": must be a string or a number`},
		{"a.jsonl", "{}\n{\"engine", "line 1: engine_request_id is missing"},
		{"a.jsonl", "\n[1]\n", "a line is a JSON object"},
		{"a.tsv", "", `the name ends in ".tsv"`},
	} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "s.jsonl"), []byte(served), 0o644))
		in := filepath.Join(t.TempDir(), c.name)
		require.NoError(t, os.WriteFile(in, []byte(c.outcomes), 0o644))
		out := filepath.Join(t.TempDir(), "train.csv")
		require.NoError(t, os.WriteFile(out, []byte("former"), 0o644))
		_, err := Run(t.Context(), Options{Served: folder, Outcomes: in, Window: time.Hour, Label: Max, Out: out, Memory: 1 << 20})
		assert.ErrorContains(t, err, c.want)
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		assert.Equal(t, "former", string(text))
	}
}

// TestAMarkIsNoPartOfAnEvent: editors of Windows put one before a file.
func TestAMarkIsNoPartOfAnEvent(t *testing.T) {
	for name, text := range map[string]string{
		"x.csv": "engine_request_id,id,time\nr,1,5\n", "x.jsonl": `{"engine_request_id":"r","id":1,"time":5}`,
	} {
		read := 0
		require.NoError(t, readEvents(name, strings.NewReader(fileio.ByteOrderMark+text), func(e *event) error {
			read++
			assert.Equal(t, event{Request: "r", Row: "1", Time: "5"}, *e)
			return nil
		}), name)
		assert.Equal(t, 1, read, name)
	}
}

// FuzzEvents: any file is read or refused, both formats alike, and what comes of it keeps records apart.
func FuzzEvents(f *testing.F) {
	f.Add(true, "engine_request_id,id,time,value\nr,1,5,2\n")
	f.Add(false, `{"engine_request_id":"r","id":1,"time":"2026-11-27T22:30:00Z","event_id":"e"}`)
	f.Add(false, "{\"engine_request_id\":\"r\\u0000\",\"id\":\"\xff\",\"time\":1}")
	f.Fuzz(func(t *testing.T, table bool, text string) {
		name := "x.jsonl"
		if table {
			name = "x.csv"
		}
		_ = readEvents(name, strings.NewReader(text), func(e *event) error {
			fields, _, err := e.record(kindOutcome)
			if err != nil {
				return err
			}
			require.Len(t, fields, 6)
			for _, field := range fields {
				require.NotContains(t, field, sep)
				require.NotContains(t, field, "\n")
			}
			require.Len(t, fields[4], 20)
			require.NotContains(t, fields[5], "NaN")
			return nil
		})
	})
}

// FuzzServed: any line is taken or refused, and one that is taken makes records of one number of fields.
func FuzzServed(f *testing.F) {
	f.Add(`{"served_log":1,"engine_request_id":"r","time":"2026-11-27T22:30:00Z","user_id":7,"delivered":true,"outputs":[{"ids":[1],"columns":{"price":[2]}}]}`)
	f.Add(`{"served_log":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parseServed([]byte(text))
		if err != nil || l.Version != served.Version {
			return
		}
		j := &join{columns: map[string]int{}, events: fileio.NewSorter(t.TempDir(), math.MaxInt, bytes.Compare)}
		require.NoError(t, j.addServed(&l))
		require.NoError(t, j.events.Each(func(r []byte) error {
			require.NotContains(t, string(r), "\n")
			n := strings.Count(string(r), sep)
			require.GreaterOrEqual(t, n, 9)
			require.LessOrEqual(t, n, 9+len(j.columns))
			return nil
		}))
	})
}

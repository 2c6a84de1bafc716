package relevance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	want := map[string]Grades{"q1": {"7": 2, "sku-1": 0}, "8": {"7": Unjudged}}
	for name, text := range map[string]string{
		"j.qrels":  "q1 0 7 2\nq1\t0\tsku-1   0\r\n\n8 x 7 -1\nq1 0 7 2",
		"j.csv":    "\ufeffgrade,by,request,id\n2,ann,q1,7\r\n0,\"bob, too\",q1,sku-1\n\n-1,,8,7\n",
		"j.jsonl":  `{"request":"q1","id":7,"grade":2,"by":"ann"}` + "\n" + `{"request":"q1","id":"sku-1","grade":0}` + "\r\n" + `{"request":8,"id":"7","grade":-1}`,
		"j.ndjson": `{"request":"q1","id":7,"grade":2}` + "\n" + `{"request":"q1","id":"sku-1","grade":"0"}` + "\n\n" + `{"request":8,"id":"7","grade":-1}` + "\n",
	} {
		got, err := Read(name, strings.NewReader(text))
		require.NoError(t, err, name)
		assert.Equal(t, want, got, name)
	}
	for _, c := range []struct{ name, text, want string }{
		{"j.txt", "q 0 1 1", `the name ends in ".txt"; judgments are read from .qrels, .csv, .jsonl and .ndjson`},
		{"j.qrels", "", "the file has no judgments"},
		{"j.csv", "request,id,grade\n", "the file has no judgments"},
		{"j.qrels", "q 0 1 1\nq 0 1\n", "line 2: a line has a request, a column without meaning, an id and a grade, not 3 fields"},
		{"j.qrels", "q 0 1 1 1\n", "not 5 fields"},
		{"j.qrels", "q 0 1 1\nq 0 2 1\nq 0 1 2\n", `line 3: id "1" of request "q" has grade 2, and had 1 before`},
		{"j.qrels", "q 0 1 -1\nq 0 1 1\n", "has grade 1, and had -1 before"},
		{"j.qrels", "q 0 1 -2\n", `line 1: grade is "-2", must be a whole number from 0 to 1000, or -1`},
		{"j.qrels", "q 0 1 1001\n", "must be a whole number"},
		{"j.jsonl", `{"request":"q","id":1,"grade":1.5}`, "must be a whole number"},
		{"j.jsonl", `{"request":"q","id":1}`, "line 1: grade is missing"},
		{"j.jsonl", `{"id":1,"grade":1}`, "request is missing"},
		{"j.jsonl", `{"request":"q","id":null,"grade":1}`, "id is missing"},
		{"j.jsonl", `{"request":"q","id":1,"id":2,"grade":1}`, "duplicate"},
		{"j.jsonl", "{\"request\":\"q\",\"id\":1,\"grade\":1}\n[1]", "line 2: "},
		{"j.qrels", "q 0 \xff 1\n", "line 1: id is not in UTF-8"},
		{"j.csv", "request,id,grade\nq, 1,1\n", `line 2: id is " 1", with white space at an end`},
		{"j.jsonl", `{"request":"q ","id":1,"grade":1}`, `line 1: request is "q ", with white space at an end`},
		{"j.csv", "request,id\nq,1\n", "line 1: the first line names the columns"},
		{"j.csv", "request,id,grade,id\nq,1,1,1\n", "each once"},
		{"j.csv", "request,id,grade\nq,1,1\nq,2\n", "line 3: wrong number of fields"},
		{"j.csv", "request,id,grade\nq,\"1,1\n", "line 2: "},
		{"j.qrels", "q 0 1 1\nq 0 " + strings.Repeat("x", lineMax) + " 1\n", "line 2 is longer than 65536 bytes"},
	} {
		_, err := Read(c.name, strings.NewReader(c.text))
		assert.ErrorContains(t, err, c.want, "%s: %.100s", c.name, c.text)
	}
}

// FuzzRead: what Read takes in any form has grades in their range, and means the same written as JSON.
func FuzzRead(f *testing.F) {
	for i, text := range []string{"q 0 1 1\n", "request,id,grade\nq,1,2\n", `{"request":"q","id":1,"grade":2}`} {
		f.Add(i, text)
	}
	f.Fuzz(func(t *testing.T, form int, text string) {
		names := []string{"j.qrels", "j.csv", "j.jsonl"}
		all, err := Read(names[uint(form)%3], strings.NewReader(text))
		if err != nil {
			return
		}
		var lines strings.Builder
		for request, grades := range all {
			for id, grade := range grades {
				assert.True(t, grade >= Unjudged && grade <= gradeMost)
				asJSON := func(s string) string { text, _ := json.Marshal(s); return string(text) }
				if len(request)+len(id) > lineMax/8 {
					return // The escapes of JSON may make a line too long.
				}
				fmt.Fprintf(&lines, "{\"request\":%s,\"id\":%s,\"grade\":%d}\n", asJSON(request), asJSON(id), grade)
			}
		}
		again, err := Read("j.jsonl", strings.NewReader(lines.String()))
		require.NoError(t, err)
		assert.Equal(t, all, again)
	})
}

package builtin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/resp"
)

// fuzzedForms have a form for each way in which entries stand in a reply.
var fuzzedForms = []replyForm{
	{shape: idsReply}, {shape: idsScoresReply}, {shape: mapReply}, {shape: scalarReply},
	{shape: streamReply, id: "a"}, {shape: streamReply, id: "a", score: "b"}, {shape: searchReply}, {shape: searchReply, scores: true}, {shape: searchReply, bare: true},
	{shape: searchReply, scores: true, bare: true}, {shape: searchReply, id: "a", score: "b"}, {shape: hybridReply, id: "a", score: "b"},
}

// walkedEntries returns ids and scores as a walk over the whole reply finds them; ok is false if it is of another shape.
func walkedEntries(f *replyForm, reply any) (entries [][2]any, ok bool) {
	array, isArray := reply.([]any)
	text := func(v any) any {
		if _, nested := v.([]any); nested {
			return nil
		}
		return v
	}
	field := func(fields any, name string) any {
		list, _ := fields.([]any)
		for i := 0; i+1 < len(list); i += 2 {
			if list[i] == name && name != "" {
				return text(list[i+1])
			}
		}
		return nil
	}
	isList := func(v any, n int) bool { list, ok := v.([]any); return ok && (n < 0 || len(list) == n) }
	plain := func(v any) bool { _, failed := v.(failure); return !failed && !isList(v, -1) }
	flat := true
	for _, e := range array {
		flat = flat && plain(e)
	}
	switch {
	case f.shape == scalarReply:
		_, status := reply.(status)
		return nil, !isArray && !status
	case !isArray:
		return nil, false
	case f.shape == idsReply:
		for _, e := range array {
			entries = append(entries, [2]any{e, nil})
		}
		ok = flat
	case f.shape == mapReply, f.shape == idsScoresReply && (len(array) == 0 || !isList(array[0], -1)):
		for i := 0; i+1 < len(array); i += 2 {
			entries = append(entries, [2]any{array[i], array[i+1]})
		}
		ok = flat && len(array)%2 == 0
	case f.shape == idsScoresReply:
		ok = true
		for _, e := range array {
			if ok = ok && isList(e, 2) && plain(e.([]any)[0]) && plain(e.([]any)[1]); ok {
				entries = append(entries, [2]any{text(e.([]any)[0]), text(e.([]any)[1])})
			}
		}
	case f.shape == streamReply:
		ok = true
		for _, e := range array {
			if ok = ok && isList(e, 2) && plain(e.([]any)[0]) && isList(e.([]any)[1], -1); ok {
				entries = append(entries, [2]any{field(e.([]any)[1], f.id), field(e.([]any)[1], f.score)})
			}
		}
	case f.shape == hybridReply:
		for i := 0; i+1 < len(array) && !ok; i += 2 {
			if array[i] == "results" {
				results, isList := array[i+1].([]any)
				for _, e := range results {
					_, list := e.([]any)
					isList = isList && list
					entries = append(entries, [2]any{field(e, f.id), field(e, f.score)})
				}
				return entries, isList
			}
		}
	default: // of a search
		ok = len(array) > 0
		if ok {
			_, ok = array[0].(integer)
			array = array[1:]
		}
		for len(array) > 0 && ok {
			entry := [2]any{text(array[0])}
			ok, array = plain(array[0]), array[1:]
			if f.scores {
				if ok = ok && len(array) > 0 && plain(array[0]); ok {
					entry[1], array = array[0], array[1:]
				}
			}
			if !f.bare && ok {
				if ok = len(array) > 0 && (array[0] == nil || isList(array[0], -1)); ok {
					if f.id != "" {
						entry[0] = field(array[0], f.id)
					}
					if !f.scores {
						entry[1] = field(array[0], f.score)
					}
					array = array[1:]
				}
			}
			entries = append(entries, entry)
		}
	}
	return entries, ok
}

// An integer, a status and an error are what a reply has as such.
type integer string
type status string
type failure string

// exported returns a reply as Go has it: its texts, integers, nil and arrays.
func exported(reply resp.Reply) any {
	switch reply.Kind() {
	case resp.Array:
		list := []any{}
		for e := range reply.All() {
			list = append(list, exported(e))
		}
		return list
	case resp.Null:
		return nil
	case resp.Integer:
		return integer(reply.Bytes())
	case resp.SimpleString:
		return status(reply.Bytes())
	case resp.Error:
		return failure(reply.Bytes())
	}
	return string(reply.Bytes())
}

// FuzzReplies reads any reply by each form, and compares what it finds with a walk over the whole.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{"*0\r\n", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n", "*1\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n", "*1\r\n*2\r\n$3\r\n1-1\r\n*4\r\n$1\r\na\r\n$1\r\n5\r\n$1\r\nb\r\n$1\r\n7\r\n", "$-1\r\n", ":5\r\n",
		"*3\r\n:1\r\n$1\r\n4\r\n*2\r\n$1\r\nb\r\n$3\r\n0.5\r\n", "*3\r\n:2\r\n$1\r\n4\r\n*-1\r\n", "*4\r\n:1\r\n$1\r\n4\r\n$1\r\n1\r\n*2\r\n$1\r\na\r\n$1\r\n9\r\n", "*2\r\n:1\r\n$1\r\n4\r\n",
		"*4\r\n$7\r\nresults\r\n*1\r\n*4\r\n$1\r\na\r\n$1\r\n4\r\n$1\r\nb\r\n$1\r\n2\r\n$8\r\nwarnings\r\n*0\r\n", "*1\r\n*1\r\n*1\r\n:1\r\n", "*2\r\n+\x1f\r\n-\r\n", "*2\r\n*1\r\n:1\r\n$1\r\n1\r\n"} {
		f.Add([]byte(seed))
	}
	shown := func(v any) string { return fmt.Sprintf("%q", v) }
	f.Fuzz(func(t *testing.T, encoded []byte) {
		decoder := resp.NewDecoder(resp.Limits{})
		decoder.Reset(1)
		if _, done, err := decoder.Decode(encoded); err != nil || !done || decoder.Replies().At(0).Kind() == resp.Error {
			return
		}
		reply := decoder.Replies().At(0)
		for _, form := range fuzzedForms {
			want, ok := walkedEntries(&form, exported(reply))
			require.Equal(t, ok, form.fits(reply), "%+v: %q", form, encoded)
			if !ok || form.shape == scalarReply {
				continue
			}
			i := 0
			n, _ := form.entries(reply, func(id, score []byte) {
				for k, got := range [][]byte{id, score} {
					value := want[i][k]
					require.Equal(t, value == nil, got == nil, "%+v: %q", form, encoded)
					require.True(t, value == nil || shown(value) == shown(got), "%+v: %q", form, encoded)
				}
				i++
			})
			require.Equal(t, []int{len(want), n}, []int{i, len(want)}, "%+v: %q", form, encoded)
		}
	})
}

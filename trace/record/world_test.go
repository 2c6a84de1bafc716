package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fill gives *v random values: short and long ones, nil ones and empty ones.
func fill(v reflect.Value, r *rand.Rand) {
	n := r.IntN(4)
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(n > 1)
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, -1, math.MinInt64, r.Int64()}[n])
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(256)))
	case reflect.Uint64:
		v.SetUint(r.Uint64())
	case reflect.Float64:
		v.SetFloat(r.Float64())
	case reflect.String:
		v.SetString([]string{"", "a", "ümlaut\x00\xff", fmt.Sprint(r.Uint64())}[n])
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), r)
		}
	case reflect.Slice:
		if n == 0 {
			return
		}
		n--
		if v.Type().Elem().Kind() == reflect.Uint8 {
			n *= []int{1, inlineBytes - 1, inlineBytes, 1000}[r.IntN(4)]
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), r)
		}
	case reflect.Map:
		if n > 0 {
			texts := map[string]string{}
			for i := range n - 1 {
				texts[fmt.Sprint(i)] = fmt.Sprint(r.Uint64())
			}
			v.Set(reflect.ValueOf(texts))
		}
	case reflect.Pointer:
		if n > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), r)
		}
	case reflect.Struct:
		if v.Type() == timeType {
			if n > 0 {
				v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<40)-1<<39, r.Int64N(1e9)).UTC()))
			}
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), r)
		}
	default:
		panic(v.Type())
	}
}

func random[T any](r *rand.Rand) *T {
	v := new(T)
	fill(reflect.ValueOf(v).Elem(), r)
	return v
}

// world is a Source of generations and rows that are made of their digests.
type world struct{}

func seeded(text string) *rand.Rand {
	d := digestOf([]byte(text))
	return rand.New(rand.NewChaCha8([32]byte(d)))
}

func (world) Generation(digest string) (*Generation, error) {
	g := random[Generation](seeded(digest))
	g.Digest = digest
	return g, nil
}

func (world) Resident(plan, digest string) (*Resident, error) {
	s := random[Resident](seeded(plan + digest))
	s.Plan, s.Digest = plan, digest
	return s, nil
}

// request makes a request of a user.
func request(id byte, user int64) *Request {
	q := random[Request](seeded(fmt.Sprint(id, user)))
	q.ID, q.UserID, q.UserIDText, q.Marked = [16]byte{id}, user, "", false
	q.Generation = fmt.Sprint("g", user%3)
	return q
}

// small makes a request of some 200 bytes.
func small(id byte, user int64) *Request {
	rows := Rows{N: 1, IDs: Column{Name: "id", Digest: 1}}
	return &Request{ID: [16]byte{id}, UserID: user, Params: []byte("{}"), Runs: []Run{{Nodes: []Node{{ID: "n1", Rows: rows}}}},
		Trace: fmt.Appendf(nil, "%070d", id)}
}

// write makes a file of requests, with a frame for each two.
func write(t testing.TB, h Header, requests ...*Request) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, h)
	require.NoError(t, err)
	for i, q := range requests {
		require.NoError(t, w.Add(q, world{}))
		if i%2 == 1 {
			require.NoError(t, w.Flush())
		}
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// readAll returns the requests of a file and the error behind them, which is nil at its end.
func readAll(file []byte, o ReadOptions) (all []*Request, err error) {
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		q, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, q)
	}
}

// offsets returns where the frames of a file begin, and its end.
func offsets(file []byte) (at []int64) {
	for offset := int64(len(magic)); offset < int64(len(file)); {
		at = append(at, offset)
		var h head
		if h.get(file[offset:], offset) != nil {
			break
		}
		offset += headBytes + int64(h.stored)
	}
	return append(at, int64(len(file)))
}

package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func identity(t testing.TB) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	return id
}

// TestWhatIsWrittenIsRead: values that are nil, empty, short and long, behind several headers, encrypted or not. What is equal has equal bytes.
func TestWhatIsWrittenIsRead(t *testing.T) {
	mine, other := identity(t), identity(t)
	for _, c := range []struct {
		name       string
		recipients []string
		identities []age.Identity
	}{
		{name: "plain"},
		{"encrypted", []string{mine.Recipient().String()}, []age.Identity{mine}},
		{"to two", []string{other.Recipient().String(), mine.Recipient().String()}, []age.Identity{mine}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(20) {
				r := rand.New(rand.NewPCG(seed, 0))
				headers := []*Header{random[Header](r), random[Header](r)}
				for _, h := range headers {
					h.Sample, h.Expires, h.Recipients = r.Float64(), time.Time{}, c.recipients
				}
				var requests []*Request
				for range r.IntN(30) {
					requests = append(requests, random[Request](r))
				}
				half := len(requests) / 2
				make := func() []byte {
					var out bytes.Buffer
					w, err := NewWriter(&out, *headers[0])
					require.NoError(t, err)
					for i, q := range requests {
						if i == half {
							require.NoError(t, w.Header(*headers[1]))
						}
						require.NoError(t, w.Add(q, world{}))
					}
					require.NoError(t, w.Close())
					require.Error(t, w.Add(new(Request), world{}), "it is closed")
					return out.Bytes()
				}
				file := make()
				if c.recipients == nil {
					require.Equal(t, file, make())
				}
				in, err := NewReader(bytes.NewReader(file), int64(len(file)), ReadOptions{Identities: c.identities})
				require.NoError(t, err)
				for i, want := range requests {
					got, err := in.Next()
					require.NoError(t, err)
					require.Equal(t, want, got)
					header := headers[0]
					if i >= half {
						header = headers[1]
					}
					require.Equal(t, header, in.Header())
					if want.Generation != "" {
						g, err := in.Generation(want.Generation)
						require.NoError(t, err)
						same, _ := world{}.Generation(want.Generation)
						require.Equal(t, same, g)
					}
					for _, run := range want.Runs {
						for plan, rows := range run.Residents {
							s, err := in.Resident(plan, rows)
							require.NoError(t, err)
							same, _ := world{}.Resident(plan, rows)
							require.Equal(t, same, s)
						}
					}
				}
				for range 2 {
					_, err = in.Next()
					require.Equal(t, io.EOF, err)
				}
				_, err = in.Generation("another")
				require.Error(t, err)
				require.NoError(t, in.Close())
			}
		})
	}
}

// TestEachFlippedByteIsFound: the error names the frame, and what came before it is as it was.
func TestEachFlippedByteIsFound(t *testing.T) {
	mine := identity(t)
	for _, h := range []Header{{Sample: 1, Salt: "s"}, {Sample: 1, Recipients: []string{mine.Recipient().String()}}} {
		o := ReadOptions{Identities: []age.Identity{mine}}
		file := write(t, h, small(1, 7), small(2, 8), small(3, 7))
		want, err := readAll(file, o)
		require.NoError(t, err)
		require.Len(t, want, 3)
		starts := append([]int64{0}, offsets(file)...)
		for i := range file {
			at := int64(0)
			for _, start := range starts {
				if start <= int64(i) {
					at = start
				}
			}
			for _, bit := range []byte{1, 0x80, 0xff} {
				flipped := bytes.Clone(file)
				flipped[i] ^= bit
				got, err := readAll(flipped, o)
				require.ErrorIs(t, err, ErrDamaged, "byte %d", i)
				require.ErrorContains(t, err, fmt.Sprintf("byte %d: ", at))
				require.Equal(t, want[:len(got)], append([]*Request{}, got...))
			}
		}
	}
}

// TestAFrameStandsWhereItWasWritten: frames that are swapped, left out, put twice or taken from another file are found.
func TestAFrameStandsWhereItWasWritten(t *testing.T) {
	requests := []*Request{small(1, 7), small(1, 7), small(1, 7), small(1, 7), small(1, 7), small(1, 7)}
	file := write(t, Header{Sample: 1, Salt: "a"}, requests...)
	other := write(t, Header{Sample: 1, Salt: "b"}, requests...)
	at := offsets(file)
	require.Len(t, at, 6, "the frames behind the first one have requests alone")
	part := func(file []byte, i int) []byte { return file[at[i]:at[i+1]] }
	head := file[:at[1]]
	for name, parts := range map[string][][]byte{
		"swapped":             {head, part(file, 1), part(file, 3), part(file, 2), part(file, 4)},
		"left out":            {head, part(file, 1), part(file, 3), part(file, 4)},
		"twice":               {head, part(file, 1), part(file, 2), part(file, 2), part(file, 4)},
		"another file's":      {head, part(other, 1), part(file, 2), part(file, 3), part(file, 4)},
		"behind the end":      {file, part(file, 4)},
		"no header":           {[]byte(magic), part(file, 1)},
		"two headers of them": {head, part(file, 0), part(file, 1)},
	} {
		_, err := readAll(bytes.Join(parts, nil), ReadOptions{})
		assert.ErrorIs(t, err, ErrDamaged, name)
	}
}

// TestCutAtEachByte: the whole frames are read, and the error says where the rest begins and how long it is.
func TestCutAtEachByte(t *testing.T) {
	file := write(t, Header{Sample: 1}, request(1, 7), request(2, 8), request(3, 7), request(4, 9), request(5, 9))
	want, err := readAll(file, ReadOptions{})
	require.NoError(t, err)
	at := offsets(file)
	require.Len(t, at, 6)
	for n := range file {
		start, whole := int64(0), 0
		for i, offset := range at {
			if offset <= int64(n) {
				start, whole = offset, []int{0, 0, 2, 4, 5}[i]
			}
		}
		got, err := readAll(file[:n], ReadOptions{})
		torn := (*Torn)(nil)
		require.ErrorAs(t, err, &torn, "byte %d", n)
		require.Equal(t, Torn{start, int64(n) - start}, *torn)
		require.ErrorContains(t, err, fmt.Sprintf("byte %d: ", start))
		require.Equal(t, want[:whole], append([]*Request{}, got...))
	}
}

// limited takes so many bytes, and then has no room.
type limited struct {
	bytes.Buffer
	left int
}

var errNoRoom = errors.New("no space left")

func (l *limited) Write(p []byte) (int, error) {
	n, err := min(len(p), l.left), error(nil)
	if n < len(p) {
		err = errNoRoom
	}
	l.left -= n
	_, _ = l.Buffer.Write(p[:n])
	return n, err
}

// TestADiskThatIsFull: each call returns the error, and what was written reads as a torn file.
func TestADiskThatIsFull(t *testing.T) {
	requests := []*Request{small(1, 7), small(2, 8), small(3, 7), small(4, 9)}
	file := write(t, Header{Sample: 1}, requests...)
	for n := range file {
		to := &limited{left: n}
		w, err := NewWriter(to, Header{Sample: 1})
		for i := 0; err == nil && i < len(requests); i++ {
			if err = w.Add(requests[i], world{}); err == nil && i%2 == 1 {
				err = w.Flush()
			}
		}
		if err == nil {
			err = w.Close()
		}
		require.ErrorIs(t, err, errNoRoom)
		if w != nil {
			require.ErrorIs(t, w.Add(requests[0], world{}), errNoRoom)
			require.ErrorIs(t, w.Flush(), errNoRoom)
			require.ErrorIs(t, w.Close(), errNoRoom)
		}
		require.Equal(t, string(file[:n]), to.String())
	}
}

// short takes a byte less than it is given, and says nothing.
type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) - 1, nil }

func TestAShortWriteIsAnError(t *testing.T) {
	_, err := NewWriter(short{}, Header{Sample: 1})
	require.ErrorIs(t, err, io.ErrShortWrite)
}

// TestContentIsThereOnce: of replies, plans and rows that many requests name.
func TestContentIsThereOnce(t *testing.T) {
	reply := make([]byte, 3*partBytes+1)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range reply {
		reply[i] = byte(r.Uint32())
	}
	q := &Request{Generation: "g", Runs: []Run{{Residents: map[string]string{"p": "d"}, Nodes: []Node{{Values: []Value{{Kind: Reply, Bytes: reply}, {Bytes: reply}}}}}}}
	many := write(t, Header{Sample: 1}, q, q, q, q, q)
	assert.Less(t, len(many), len(write(t, Header{Sample: 1}, q))+3*200)
	got, err := readAll(many, ReadOptions{})
	require.NoError(t, err)
	assert.Equal(t, []*Request{q, q, q, q, q}, got)
}

// TestAReaderLetsFramesGo: what it holds is bounded, and a blob of a frame that it has let go is there again.
func TestAReaderLetsFramesGo(t *testing.T) {
	var requests []*Request
	first := bytes.Repeat([]byte("first"), 100)
	for i := range byte(30) {
		big := bytes.Repeat([]byte{i}, 3<<20)
		requests = append(requests, &Request{ID: [16]byte{i}, Trace: big, Params: first})
	}
	file := write(t, Header{Sample: 1}, requests...)
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), ReadOptions{})
	require.NoError(t, err)
	for _, want := range requests {
		got, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.LessOrEqual(t, r.held, framesHeldMax+frameBytesMax)
		require.Len(t, r.order, len(r.frames))
	}
	require.Less(t, len(r.frames), 300, "of some 360")
}

func TestExpiry(t *testing.T) {
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	file := write(t, Header{Sample: 1, Expires: at}, request(1, 7))
	_, err := readAll(file, ReadOptions{Now: at.Add(-1)})
	require.NoError(t, err)
	_, err = readAll(file, ReadOptions{Now: at})
	require.ErrorIs(t, err, ErrExpired)
	require.ErrorContains(t, err, "2026-12-01")
}

// TestEncryption: nothing of a request is readable, and a key is needed.
func TestEncryption(t *testing.T) {
	mine, other := identity(t), identity(t)
	h := Header{Sample: 1, Recipients: []string{mine.Recipient().String()}}
	q := &Request{RequestID: "a secret visit", Params: []byte("a secret")}
	file := write(t, h, q)
	assert.NotContains(t, string(file), "secret")
	assert.Contains(t, string(write(t, Header{Sample: 1}, q)), "a secret visit")
	_, err := readAll(file, ReadOptions{})
	require.ErrorContains(t, err, "needs the identity")
	_, err = readAll(file, ReadOptions{Identities: []age.Identity{other}})
	require.ErrorContains(t, err, "did not match any of the recipients")
	for _, text := range []string{"age1", "# a comment", "", mine.String(), mine.Recipient().String() + "\n" + other.Recipient().String()} {
		_, err := NewWriter(io.Discard, Header{Sample: 1, Recipients: []string{text}})
		require.ErrorContains(t, err, "recipient 1 is no public key", text)
		assert.NotContains(t, err.Error(), mine.String())
	}
	w, err := NewWriter(io.Discard, h)
	require.NoError(t, err)
	require.ErrorContains(t, w.Header(Header{Sample: 1}), "same recipients")
}

// TestRefused: what a file can't have is refused, and the file goes on without it.
func TestRefused(t *testing.T) {
	var out bytes.Buffer
	_, err := NewWriter(&out, Header{Sample: 1.5})
	require.ErrorContains(t, err, "from 0 to 1")
	w, err := NewWriter(&out, Header{Sample: 1})
	require.NoError(t, err)
	require.ErrorContains(t, w.Add(&Request{RequestID: string(make([]byte, bodyBytesMax))}, world{}), "at most 4194304")
	require.ErrorContains(t, w.Add(&Request{Trace: make([]byte, blobBytesMax+1)}, world{}), "at most 268435456")
	require.ErrorContains(t, w.Add(&Request{Generation: "g"}, nothing{}), "generation g: gone")
	require.ErrorContains(t, w.Add(&Request{Runs: []Run{{Residents: map[string]string{"p": "d"}}}}, nothing{}), "resident rows d of p: gone")
	require.NoError(t, w.Add(request(1, 7), world{}))
	require.NoError(t, w.Close())
	got, err := readAll(out.Bytes(), ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, []*Request{request(1, 7)}, got)
}

type nothing struct{}

func (nothing) Generation(string) (*Generation, error)     { return nil, errors.New("gone") }
func (nothing) Resident(string, string) (*Resident, error) { return nil, errors.New("gone") }

// forge makes a file of frames with right checksums.
func forge(frames ...head) func(payloads ...[]byte) []byte {
	return func(payloads ...[]byte) []byte {
		file := []byte(magic)
		var id sum
		for i, h := range frames {
			start := len(file)
			file = append(append(file, make([]byte, headBytes)...), payloads[i]...)
			h.stored = uint32(len(payloads[i]))
			if s := h.put(file[start:], id, int64(start)); i == 0 {
				id = s
			}
		}
		return file
	}
}

// headerOf is the payload of a header.
func headerOf(h Header) []byte {
	var e encoder
	e.encode(&h)
	return e.body
}

// forged makes a file with a frame of entries, whose head says size.
func forged(form byte, size int, entries []byte) []byte {
	h := headerOf(Header{Sample: 1})
	return forge(head{kind: headerFrame, size: uint32(len(h))}, head{kind: entriesFrame, form: form, size: uint32(size)},
		head{kind: endFrame, size: 2})(h, entries, []byte{0, 0})
}

// entryOf is an entry.
func entryOf(kind byte, content ...byte) []byte {
	return append(binary.AppendUvarint([]byte{kind}, uint64(len(content))), content...)
}

// TestHostileFiles: what a writer does not write is an error, and takes no memory.
func TestHostileFiles(t *testing.T) {
	zip, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	bomb := zip.EncodeAll(make([]byte, 64<<20), nil)
	part, blob := entryOf(partEntry, 'x'), entryOf(blobEntry, 'y')
	for _, c := range []struct {
		name, says string
		file       []byte
	}{
		{"more than the head says", "zstd", forged(zipped, 100, bomb)},
		{"more than a frame", "no frame has kind", forged(zipped, 64<<20, bomb)},
		{"less than the head says", "holds 2 bytes", forged(zipped, 3, zip.EncodeAll([]byte("ab"), nil))},
		{"no zstd", "zstd", forged(zipped, 3, []byte("abc"))},
		{"another length", "no frame has kind", forged(0, 4, []byte("abc"))},
		{"another form", "no frame has kind", forged(4, 3, []byte("abc"))},
		{"encrypted for nobody", "here it is otherwise", forged(sealed, 3, []byte("abc"))},
		{"another kind of entry", "no entry has kind", forged(0, 2, entryOf('x'))},
		{"an entry without length", "does not end in its frame", forged(0, 1, []byte{requestEntry})},
		{"an entry that is too long", "does not end in its frame", forged(0, 3, []byte{requestEntry, 2, 0})},
		{"a length beyond all", "does not end in its frame", forged(0, 11, append([]byte{requestEntry}, bytes.Repeat([]byte{0xff}, 10)...))},
		{"blobs that nobody has", "names a blob", forged(0, 4, entryOf(requestEntry, 1, 0))},
		{"a count of blobs", "how many blobs", forged(0, 4, entryOf(requestEntry, 0xff, 0x7f))},
		{"a body without fields", "does not end where", forged(0, 3, entryOf(requestEntry, 0))},
		{"a body that goes on", "does not end where", forged(0, 5, entryOf(requestEntry, 0, 0, 0))},
		{"a blob without end", "no end", forged(0, 3, part)},
		{"parts apart", "between the parts", forged(0, 10, append(append(bytes.Clone(part), entryOf(requestEntry, 0, 0)...), blob...))},
		{"other counts", "the end counts", forged(0, 3, blob)},
		{"a header as an end", "the first frame is no header", forge(head{kind: endFrame, size: 2})([]byte{0, 0})},
		{"a header that is none", "the header", forge(head{kind: headerFrame, size: 1})([]byte{9})},
		{"a share above all", "the header", func() []byte {
			h := headerOf(Header{Sample: 2})
			return forge(head{kind: headerFrame, size: uint32(len(h))})(h)
		}()},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readAll(c.file, ReadOptions{})
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestABodyOfManyElements: a small body can't ask for much memory.
func TestABodyOfManyElements(t *testing.T) {
	type wide struct{ Fields [1 << 16]byte }
	var v struct{ All []wide }
	e := encoder{body: binary.AppendUvarint(nil, uint64(20<<10))}
	e.body = append(e.body, make([]byte, 20<<10)...)
	body := append(binary.AppendUvarint(nil, uint64(len(e.body))), e.body...)
	require.ErrorIs(t, decode(body, &v, 0, nil), errBody)
	load := func(int) ([]byte, error) { return make([]byte, decodedBytesMax/2+1), nil }
	var two struct{ A, B []byte }
	require.ErrorContains(t, decode([]byte{2, 2, 4}, &two, 2, load), "its blobs have more than")
	require.NoError(t, decode([]byte{2, 2, 2}, &two, 1, load), "the same blob counts once")
}

// TestOtherBuilds: a later build may add fields behind those of a struct.
func TestOtherBuilds(t *testing.T) {
	type inner struct{ A int }
	type older struct {
		X inner
		L []inner
	}
	type innerNow struct {
		A int
		B string
	}
	type newer struct {
		X innerNow
		L []innerNow
		M map[string]string
	}
	var e encoder
	e.encode(&older{inner{1}, []inner{{2}}})
	var n newer
	require.NoError(t, decode(e.body, &n, 0, nil))
	assert.Equal(t, newer{X: innerNow{A: 1}, L: []innerNow{{A: 2}}}, n)
	e = encoder{}
	e.encode(&newer{innerNow{1, "b"}, []innerNow{{2, "c"}}, map[string]string{"k": "v"}})
	var o older
	require.NoError(t, decode(e.body, &o, 0, nil))
	assert.Equal(t, older{inner{1}, []inner{{2}}}, o)
}

// check reads a file of anybody. A file that reads well is written again, and reads the same.
func check(t *testing.T, file []byte) {
	got, err := readAll(file, ReadOptions{Now: time.Unix(0, 0)})
	if err != nil {
		return
	}
	in, err := NewReader(bytes.NewReader(file), int64(len(file)), ReadOptions{Now: time.Unix(0, 0)})
	require.NoError(t, err)
	var out bytes.Buffer
	c := rewriter{to: &out}
	if c.copy(in, func(int, *Request) bool { return true }) != nil { // The generation of a request may not be there.
		return
	}
	require.NoError(t, c.w.Close())
	again, err := readAll(out.Bytes(), ReadOptions{Now: time.Unix(0, 0)})
	require.NoError(t, err)
	require.Len(t, again, len(got))
	for i := range got {
		var a, b encoder
		a.encode(got[i])
		b.encode(again[i])
		require.Equal(t, a.body, b.body)
	}
}

// FuzzReader: bytes of anybody give requests or an error.
func FuzzReader(f *testing.F) {
	file := write(f, Header{Sample: 1}, request(1, 7), request(2, 8))
	f.Add(file)
	f.Add(file[:len(file)-10])
	f.Fuzz(check)
}

// FuzzEntries: so do entries of anybody behind right checksums, as they are and unzipped.
func FuzzEntries(f *testing.F) {
	var e encoder
	e.encode(request(1, 7))
	f.Add(false, uint16(0), append(entryOf(blobEntry, make([]byte, 100)...), entryOf(requestEntry, append([]byte{0}, e.body...)...)...))
	f.Add(false, uint16(0), entryOf(generationEntry, 0, 0))
	zip, err := zstd.NewWriter(nil)
	require.NoError(f, err)
	f.Add(true, uint16(2), zip.EncodeAll(entryOf(residentEntry), nil))
	f.Fuzz(func(t *testing.T, unzip bool, size uint16, entries []byte) {
		if unzip {
			check(t, forged(zipped, int(size), entries))
			return
		}
		h, end := headerOf(Header{Sample: 1}), []byte{1, 1}
		check(t, forge(head{kind: headerFrame, size: uint32(len(h))}, head{kind: entriesFrame, size: uint32(len(entries))},
			head{kind: endFrame, size: 2})(h, entries, end))
	})
}

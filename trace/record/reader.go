package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// ReadOptions say who reads, and when. The zero value reads files that are not encrypted. Immutable.
type ReadOptions struct {
	Identities []age.Identity // keys to what is encrypted
	Now        time.Time      // decides what has expired; zero: the time of NewReader
}

// Torn is the error at the end of a file that has no end: its writer was killed or still writes, or the file was cut off. What is whole came
// before it. Immutable.
type Torn struct {
	Offset int64 // where the first frame begins that is not whole
	Bytes  int64 // from there to the end
}

func (t *Torn) Error() string {
	return fmt.Sprintf("byte %d: the file is torn: %d bytes behind the last whole frame are skipped, and what would have followed is not there", t.Offset, t.Bytes)
}

// A Reader reads a file, which may be of anybody: it checks each byte, and bounds what it holds. That are 72 MiB of entries, 16 bytes for each
// blob, some 100 for each generation and each version of resident rows, and a gibibyte of what it has read last. It is a Source of
// what stands before the latest request. One goroutine.
type Reader struct {
	from    io.ReaderAt
	size    int64
	options ReadOptions
	unzip   *zstd.Decoder
	file    sum
	first   *Header
	header  *Header
	offset  int64  // of the next frame
	current *frame // whose entries Next gives; nil: none
	at      int    // behind the entry that Next has read

	frames map[int64]*frame // some of those before
	order  []*frame         // of frames, the eldest first
	held   int              // bytes of their entries

	blobs    []place // by their numbers
	shared   map[digest]place
	part     place // where the blob begins that goes on
	partSize int   // of its parts; -1: no blob goes on
	requests uint64
	err      error
	closer   io.Closer
}

// A frame is a frame of entries. Immutable.
type frame struct {
	offset, next int64 // of itself, and of the frame behind it
	entries      []byte
}

// A place is where an entry begins.
type place struct {
	frame int64 // offset
	at    int
}

// Open opens a file, which Close closes.
func Open(path string, o ReadOptions) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is no regular file")
	}
	var r *Reader
	if err == nil {
		r, err = NewReader(f, info.Size(), o)
	}
	if err != nil {
		_ = f.Close() // It was only read.
		return nil, err
	}
	r.closer = f
	return r, nil
}

// NewReader reads the header of a file of that size, and returns a Reader of what follows. The error is a *Torn if not even the header is whole.
func NewReader(from io.ReaderAt, size int64, o ReadOptions) (*Reader, error) {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	start := make([]byte, min(size, int64(len(magic))))
	if _, err := from.ReadAt(start, 0); err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.HasPrefix([]byte(magic), start) {
		return nil, damaged(0, "a file of records begins with %q, this one with %q", magic, start)
	}
	if len(start) < len(magic) {
		return nil, &Torn{0, size}
	}
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(frameBytesMax))
	if err != nil {
		return nil, err
	}
	r := &Reader{
		from: from, size: size, options: o, unzip: unzip, offset: int64(len(magic)),
		frames: map[int64]*frame{}, shared: map[digest]place{}, partSize: -1,
	}
	if err = r.advance(); err != nil {
		unzip.Close()
		return nil, err
	}
	return r, nil
}

// Header returns the header before the latest request, and at first that of the file.
func (r *Reader) Header() *Header { return r.header }

// Next returns the next request, whose bytes others share: nobody changes them. The error is io.EOF at the end, and a *Torn if the file has none. Each
// call after an error returns it again.
func (r *Reader) Next() (*Request, error) { return r.next(true) }

// next is Next, which leaves values nil that are blobs if it must not load them.
func (r *Reader) next(load bool) (*Request, error) {
	for r.err == nil {
		if r.current == nil || r.at == len(r.current.entries) {
			r.err = r.advance()
			continue
		}
		var q *Request
		if q, r.err = r.entry(load); q != nil {
			return q, r.err
		}
	}
	return nil, r.err
}

// advance goes to the next frame.
func (r *Reader) advance() error {
	h, payload, err := r.read(r.offset)
	if err != nil {
		return err
	}
	offset := r.offset
	r.current, r.at, r.offset = nil, 0, offset+headBytes+int64(len(payload))
	if r.partSize >= 0 && h.kind != entriesFrame {
		return damaged(offset, "a blob has no end before this frame")
	}
	switch {
	case h.kind == headerFrame:
		return r.setHeader(payload, offset, h.sum)
	case r.first == nil:
		return damaged(offset, "the first frame is no header")
	case h.kind == endFrame:
		requests, n := binary.Uvarint(payload)
		blobs, m := binary.Uvarint(payload[max(n, 0):])
		switch {
		case n <= 0 || m <= 0 || n+m != len(payload) || requests != r.requests || blobs != uint64(len(r.blobs)):
			return damaged(offset, "the end counts other requests and blobs than %d and %d", r.requests, len(r.blobs))
		case r.offset != r.size:
			return damaged(r.offset, "%d bytes follow the end", r.size-r.offset)
		}
		return io.EOF
	}
	r.current, err = r.open(h, payload, offset)
	return err
}

// setHeader reads a header for what follows.
func (r *Reader) setHeader(text []byte, offset int64, s sum) error {
	h := new(Header)
	err := decode(text, h, 0, nil)
	if err == nil {
		err = h.check()
	}
	switch {
	case err != nil:
		return damaged(offset, "the header: %s", err)
	case r.first == nil:
		r.first, r.file = h, s
	case !h.sameRecipients(r.first):
		return damaged(offset, "the header has other recipients than the first header")
	}
	r.header = h
	return h.expired(r.options.Now)
}

// read reads the frame at offset, and checks it.
func (r *Reader) read(offset int64) (h head, payload []byte, err error) {
	rest := r.size - offset
	if rest < headBytes {
		return h, nil, &Torn{offset, rest}
	}
	var room [headBytes]byte
	if err := r.fill(room[:], offset); err != nil {
		return h, nil, err
	}
	if err := h.get(room[:], offset); err != nil {
		return h, nil, err
	}
	if rest -= headBytes; rest < int64(h.stored) {
		return h, nil, &Torn{offset, rest + headBytes}
	}
	payload = make([]byte, h.stored)
	if err := r.fill(payload, offset+headBytes); err != nil {
		return h, nil, err
	}
	if sumOf(r.file, offset, room[:14], payload) != h.sum {
		return h, nil, damaged(offset, "the frame has another checksum")
	}
	return h, payload, nil
}

func (r *Reader) fill(p []byte, offset int64) error {
	if n, err := r.from.ReadAt(p, offset); n < len(p) {
		return fmt.Errorf("byte %d: %w", offset+int64(n), cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return nil
}

// open returns the entries of a payload, and keeps them.
func (r *Reader) open(h head, payload []byte, offset int64) (*frame, error) {
	f := &frame{offset, offset + headBytes + int64(len(payload)), payload}
	if encrypted := len(r.first.Recipients) > 0; encrypted != (h.form&sealed != 0) {
		return nil, damaged(offset, "the header says that entries are encrypted: %t, and here it is otherwise", encrypted)
	}
	if h.form&sealed != 0 {
		if len(r.options.Identities) == 0 {
			return nil, fmt.Errorf("byte %d: the file is encrypted to %v, and needs the identity of one of them", offset, r.first.Recipients)
		}
		plain, err := age.Decrypt(bytes.NewReader(payload), r.options.Identities...)
		if err == nil {
			f.entries, err = io.ReadAll(plain) // It is shorter than the payload.
		}
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", offset, err)
		}
	}
	if h.form&zipped != 0 {
		entries, err := r.unzip.DecodeAll(f.entries, make([]byte, 0, h.size))
		if err != nil {
			return nil, damaged(offset, "zstd: %s", err)
		}
		f.entries = entries
	}
	if len(f.entries) != int(h.size) {
		return nil, damaged(offset, "the frame holds %d bytes, and its head says %d", len(f.entries), h.size)
	}
	for r.held += len(f.entries); r.held > framesHeldMax && len(r.order) > 0; r.order = r.order[1:] {
		r.held -= len(r.order[0].entries)
		delete(r.frames, r.order[0].offset)
	}
	r.frames[offset], r.order = f, append(r.order, f)
	return f, nil
}

// split returns the entry at an index of a frame, and the index behind it.
func (f *frame) split(at int) (kind byte, content []byte, next int, err error) {
	rest := f.entries[at:]
	size, n := binary.Uvarint(rest[1:])
	if n <= 0 || size > uint64(len(rest)-1-n) {
		return 0, nil, 0, damaged(f.offset, "an entry does not end in its frame")
	}
	end := 1 + n + int(size)
	return rest[0], rest[1+n : end : end], at + end, nil
}

// entry reads an entry, and returns it if it is a request.
func (r *Reader) entry(load bool) (*Request, error) {
	here := place{r.current.offset, r.at}
	kind, content, next, err := r.current.split(r.at)
	if err != nil {
		return nil, err
	}
	r.at = next
	switch kind {
	case partEntry, blobEntry:
		if r.partSize < 0 {
			r.part, r.partSize = here, 0
		}
		if r.partSize += len(content); r.partSize > blobBytesMax {
			return nil, damaged(here.frame, "a blob has more than %d bytes", blobBytesMax)
		}
		if kind == blobEntry {
			r.blobs, r.partSize = append(r.blobs, r.part), -1
		}
	case generationEntry:
		var g Generation
		if err = r.decode(here, content, &g, false); err == nil {
			r.shared[generationKey(g.Digest)] = here
		}
	case residentEntry:
		var s Resident
		if err = r.decode(here, content, &s, false); err == nil {
			r.shared[residentKey(s.Plan, s.Digest)] = here
		}
	case requestEntry:
		q := new(Request)
		r.requests++
		return q, r.decode(here, content, q, load)
	default:
		err = damaged(here.frame, "no entry has kind %q", kind)
	}
	if err == nil && len(r.blobs)+len(r.shared) > placesMax {
		err = damaged(here.frame, "the file has more than %d blobs", placesMax)
	}
	return nil, err
}

// decode reads the content of an entry that is no blob into *v.
func (r *Reader) decode(at place, content []byte, v any, load bool) error {
	if r.partSize >= 0 {
		return damaged(at.frame, "an entry stands between the parts of a blob")
	}
	count, n := binary.Uvarint(content)
	if n <= 0 || count > blobsOfValueMax || count > uint64(len(content)-n) {
		return damaged(at.frame, "an entry does not say how many blobs it names")
	}
	numbers := make([]uint64, count)
	for i := range numbers {
		content = content[n:]
		if numbers[i], n = binary.Uvarint(content); n <= 0 || numbers[i] >= uint64(len(r.blobs)) {
			return damaged(at.frame, "an entry names a blob that is not before it")
		}
	}
	body := content[n:]
	if len(body) > bodyBytesMax {
		return damaged(at.frame, "a body has %d bytes", len(body))
	}
	var failed error
	get := func(i int) (blob []byte, err error) {
		blob, failed = r.blob(r.blobs[numbers[i]])
		return blob, failed
	}
	if !load {
		get = nil
	}
	err := decode(body, v, len(numbers), get)
	if err != nil && failed == nil {
		err = damaged(at.frame, "%s", err)
	}
	return err
}

// blob returns the content of a blob.
func (r *Reader) blob(from place) (content []byte, err error) {
	content = []byte{}
	for {
		f, err := r.frame(from.frame)
		if err != nil {
			return nil, err
		}
		for from.at < len(f.entries) {
			kind, part, next, err := f.split(from.at)
			if err != nil {
				return nil, err
			}
			if kind == blobEntry && len(content) == 0 {
				return part, nil
			}
			if content = append(content, part...); kind == blobEntry {
				return content, nil
			}
			from.at = next
		}
		from = place{frame: f.next}
	}
}

// frame returns a frame of entries that was read before.
func (r *Reader) frame(offset int64) (*frame, error) {
	if f := r.frames[offset]; f != nil {
		return f, nil
	}
	h, payload, err := r.read(offset)
	if err != nil {
		return nil, err
	}
	if h.kind != entriesFrame {
		return nil, damaged(offset, "a blob has no end before this frame")
	}
	return r.open(h, payload, offset)
}

// Generation returns a generation that stands before the latest request.
func (r *Reader) Generation(digest string) (*Generation, error) {
	g := new(Generation)
	return g, r.get(generationKey(digest), g)
}

// Resident returns resident rows that stand before the latest request.
func (r *Reader) Resident(plan, digest string) (*Resident, error) {
	s := new(Resident)
	return s, r.get(residentKey(plan, digest), s)
}

func (r *Reader) get(key digest, v any) error {
	at, ok := r.shared[key]
	if !ok {
		return errors.New("is not in the file before the latest request")
	}
	f, err := r.frame(at.frame)
	if err != nil {
		return err
	}
	_, content, _, err := f.split(at.at)
	if err != nil {
		return err
	}
	return r.decode(at, content, v, true)
}

// Close closes the file, if Open has opened it.
func (r *Reader) Close() error {
	r.unzip.Close()
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

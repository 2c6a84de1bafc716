package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// ErrFull says that a file has as many blobs as it can: the request goes to another file.
var ErrFull = errors.New("the file has as many blobs as it can")

// A Writer writes a file. It holds the entries of one frame, some 256 KiB or the longest body, and some 60 bytes for each blob of
// the file. One goroutine.
type Writer struct {
	to         io.Writer
	header     *Header
	recipients []age.Recipient
	zip        *zstd.Encoder
	file       sum
	offset     int64
	encoder    encoder
	entries    []byte            // of the frame that is not written yet
	stored     []byte            // room for a frame
	numbers    map[digest]uint64 // of blobs
	has        map[digest]bool   // generations and resident rows, by their keys
	requests   uint64            // of the file, with those that wait
	waiting    uint64            // requests in entries
	err        error             // of the first write that failed
}

// NewWriter writes the header, and returns a Writer of what follows. Each frame is one call of to.Write.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	w := &Writer{to: to, zip: zip, numbers: map[digest]uint64{}, has: map[digest]bool{}}
	if w.recipients, err = h.keys(); err != nil {
		return nil, err
	}
	if err := w.Header(h); err != nil {
		return nil, err
	}
	return w, nil
}

// Header says that another program made the requests that follow. Its recipients are those of the first header.
func (w *Writer) Header(h Header) error {
	if err := h.check(); err != nil {
		return err
	}
	if w.header != nil && !h.sameRecipients(w.header) {
		return errors.New("the headers of a file have the same recipients")
	}
	var e encoder
	if e.encode(&h); len(e.body) > headerBytesMax {
		return fmt.Errorf("the header has %d bytes; at most %d can be", len(e.body), headerBytesMax)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	w.header = &h
	return w.write(headerFrame, e.body)
}

// Add adds a request. Its generation and its resident rows come from the source, unless the file has them. The error says that the file does not
// have the request: something is too long, the source fails, the file is full (ErrFull), or a write has failed. Then each call returns that error,
// and whole frames stand before it.
func (w *Writer) Add(r *Request, from Source) error {
	if w.err != nil {
		return w.err
	}
	if r.Generation != "" {
		if err := w.shared(generationEntry, generationKey(r.Generation), func() (any, error) { return from.Generation(r.Generation) }); err != nil {
			return fmt.Errorf("generation %s: %w", r.Generation, err)
		}
	}
	for i := range r.Runs {
		for _, plan := range slices.Sorted(maps.Keys(r.Runs[i].Residents)) {
			rows := r.Runs[i].Residents[plan]
			if err := w.shared(residentEntry, residentKey(plan, rows), func() (any, error) { return from.Resident(plan, rows) }); err != nil {
				return fmt.Errorf("resident rows %s of %s: %w", rows, plan, err)
			}
		}
	}
	err := w.add(requestEntry, r)
	if err == nil || w.err != nil {
		w.requests++
		w.waiting++
	}
	return err
}

// shared adds what requests have in common, if the file does not have it.
func (w *Writer) shared(kind byte, key digest, get func() (any, error)) error {
	if w.has[key] {
		return nil
	}
	v, err := get()
	if err == nil {
		err = w.add(kind, v)
	}
	if err == nil {
		w.has[key] = true
	}
	return err
}

// add adds a value, behind the blobs that it names and the file does not have.
func (w *Writer) add(kind byte, v any) error {
	e := &w.encoder
	e.reset()
	e.encode(v)
	switch {
	case len(e.body) > bodyBytesMax:
		return fmt.Errorf("the body has %d bytes; at most %d can be", len(e.body), bodyBytesMax)
	case len(e.blobs) > blobsOfValueMax:
		return fmt.Errorf("it has %d values of %d bytes or more; at most %d can be", len(e.blobs), inlineBytes, blobsOfValueMax)
	case len(w.numbers)+len(w.has)+len(e.blobs) >= placesMax:
		return ErrFull
	}
	for _, blob := range e.contents {
		if len(blob) > blobBytesMax {
			return fmt.Errorf("a value has %d bytes; at most %d can be", len(blob), blobBytesMax)
		}
	}
	names := binary.AppendUvarint(nil, uint64(len(e.blobs)))
	for i, key := range e.blobs {
		number, ok := w.numbers[key]
		if !ok {
			number = uint64(len(w.numbers))
			w.numbers[key] = number
			if err := w.blob(e.contents[i]); err != nil {
				return err
			}
		}
		names = binary.AppendUvarint(names, number)
	}
	return w.entry(kind, names, e.body)
}

// blob adds a blob in parts.
func (w *Writer) blob(content []byte) (err error) {
	for ; err == nil && len(content) > partBytes; content = content[partBytes:] {
		err = w.entry(partEntry, content[:partBytes], nil)
	}
	if err == nil {
		err = w.entry(blobEntry, content, nil)
	}
	return err
}

// entry adds an entry, whose content has two parts.
func (w *Writer) entry(kind byte, content, rest []byte) error {
	w.entries = binary.AppendUvarint(append(w.entries, kind), uint64(len(content)+len(rest)))
	w.entries = append(append(w.entries, content...), rest...)
	if len(w.entries) < frameBytes {
		return nil
	}
	return w.Flush()
}

// Flush writes what waits as a frame. Each frame costs some 30 bytes, and zstd finds less in a small one. It does not wait for the disk.
func (w *Writer) Flush() error {
	if len(w.entries) == 0 || w.err != nil {
		return w.err
	}
	if err := w.write(entriesFrame, w.entries); err != nil {
		return err
	}
	if w.entries, w.waiting = w.entries[:0], 0; cap(w.entries) > 4*frameBytes {
		w.entries, w.stored = nil, nil
	}
	return nil
}

// Close writes what waits, and the end of the file, without which readers say that it is torn. It does not close the io.Writer.
func (w *Writer) Close() error {
	if err := w.Flush(); err != nil {
		return err
	}
	err := w.write(endFrame, binary.AppendUvarint(binary.AppendUvarint(nil, w.requests), uint64(len(w.numbers))))
	if err == nil {
		w.err = errors.New("the file is closed")
	}
	return err
}

// write writes a frame.
func (w *Writer) write(kind byte, content []byte) error {
	if w.err != nil {
		return w.err
	}
	start := 0
	if w.offset == 0 {
		start = len(magic)
	}
	frame := append(append(w.stored[:0], magic[:start]...), make([]byte, headBytes)...)
	from, form := len(frame), byte(0)
	if kind == entriesFrame {
		if frame = w.zip.EncodeAll(content, frame); len(content) >= zippedBytes && len(frame)-from < len(content) {
			form |= zipped
		} else {
			frame = append(frame[:from], content...)
		}
		if len(w.recipients) > 0 {
			form |= sealed
			var err error
			if frame, err = seal(frame, from, w.recipients); err != nil {
				w.err = err
				return err
			}
		}
	} else {
		frame = append(frame, content...)
	}
	w.stored = frame
	h := head{kind: kind, form: form, stored: uint32(len(frame) - from), size: uint32(len(content))}
	if s := h.put(frame[start:], w.file, w.offset+int64(start)); w.offset == 0 {
		w.file = s
	}
	n, err := w.to.Write(frame)
	if err == nil && n < len(frame) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fmt.Errorf("byte %d: %w", w.offset, err)
		return w.err
	}
	w.offset += int64(n)
	return nil
}

// seal encrypts what stands in a frame from an index on.
func seal(frame []byte, from int, to []age.Recipient) ([]byte, error) {
	var out bytes.Buffer
	sealing, err := age.Encrypt(&out, to...)
	if err == nil {
		_, err = sealing.Write(frame[from:])
	}
	if err == nil {
		err = sealing.Close()
	}
	return append(frame[:from], out.Bytes()...), err
}

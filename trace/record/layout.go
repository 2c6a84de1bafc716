package record

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// magic begins each file. The digit is the version of the format.
const magic = "rankd record 1\n"

// The kinds of frames.
const (
	headerFrame  = 'H'
	entriesFrame = 'E'
	endFrame     = 'Z'
)

// The forms of a frame's payload: bits.
const (
	zipped = 1 << iota // zstd
	sealed             // age, around zstd if both
)

// The kinds of entries.
const (
	partEntry       = 'p' // of a blob that goes on in the next entry
	blobEntry       = 'b' // a blob, or its last part
	generationEntry = 'g'
	residentEntry   = 's'
	requestEntry    = 'r'
)

// The bounds of a file.
const (
	headBytes      = 30
	headerBytesMax = 1 << 20
	frameBytes     = 256 << 10 // of entries, from which on a writer ends a frame
	zippedBytes    = 512       // of entries, from which on a writer looks whether zstd makes them fewer
	frameBytesMax  = 8 << 20
	storedBytesMax = frameBytesMax + 1<<20 // a frame's payload: age adds to it
	partBytes      = 256 << 10
	framesHeldMax  = 64 << 20 // bytes of entries that a reader holds
	placesMax      = 1 << 22  // of blobs, generations and resident rows in a file
)

// The bounds of a value, such as a request: its body, the blobs that it names, and one of these.
const (
	bodyBytesMax    = 4 << 20
	blobsOfValueMax = 1 << 20
	blobBytesMax    = 256 << 20
)

// A digest is the SHA-256 of a blob, or of the key of a generation or of resident rows. Immutable.
type digest [sha256.Size]byte

// generationKey and residentKey are what a file knows a generation and resident rows by.
func generationKey(of string) digest       { return digestOf([]byte("g" + of)) }
func residentKey(plan, rows string) digest { return digestOf([]byte("s" + plan + "\x00" + rows)) }

func digestOf(content []byte) digest { return sha256.Sum256(content) }

// ErrDamaged is what errors match that say: a file has other bytes than its writer wrote, or nothing of this package wrote it. They name the
// offset of the frame.
var ErrDamaged = errors.New("the file is damaged")

func damaged(offset int64, format string, args ...any) error {
	return fmt.Errorf("byte %d: %s: %w", offset, fmt.Sprintf(format, args...), ErrDamaged)
}

// A sum is the checksum of a frame: it depends on the file and on the place of the frame there.
type sum [16]byte

// A head begins each frame. The integers are little endian.
type head struct {
	kind, form byte
	stored     uint32 // bytes of the payload
	size       uint32 // bytes of what the payload holds, without zstd and age
	sum        sum
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// put writes the head of a frame to its first bytes, headBytes of them, and returns the checksum.
func (h *head) put(frame []byte, file sum, offset int64) sum {
	frame[0], frame[1] = h.kind, h.form
	binary.LittleEndian.PutUint32(frame[2:], h.stored)
	binary.LittleEndian.PutUint32(frame[6:], h.size)
	binary.LittleEndian.PutUint32(frame[10:], crc32.Checksum(frame[:10], castagnoli))
	h.sum = sumOf(file, offset, frame[:14], frame[headBytes:])
	copy(frame[14:], h.sum[:])
	return h.sum
}

// get reads a head, and checks it for itself.
func (h *head) get(frame []byte, offset int64) error {
	if crc32.Checksum(frame[:10], castagnoli) != binary.LittleEndian.Uint32(frame[10:]) {
		return damaged(offset, "the head of the frame has another checksum")
	}
	h.kind, h.form = frame[0], frame[1]
	h.stored, h.size = binary.LittleEndian.Uint32(frame[2:]), binary.LittleEndian.Uint32(frame[6:])
	copy(h.sum[:], frame[14:])
	plain := h.form == 0 && h.stored == h.size
	switch {
	case h.kind == headerFrame && plain && h.size <= headerBytesMax:
	case h.kind == endFrame && plain && h.size <= 2*binary.MaxVarintLen64:
	case h.kind == entriesFrame && h.form <= zipped|sealed && (plain || h.form != 0) && h.size <= frameBytesMax && h.stored <= storedBytesMax:
	default:
		return damaged(offset, "no frame has kind %q, form %d, %d bytes that hold %d", h.kind, h.form, h.stored, h.size)
	}
	return nil
}

func sumOf(file sum, offset int64, head, payload []byte) (s sum) {
	hash := sha256.New()
	_, _ = hash.Write(file[:]) // A hash takes everything.
	_, _ = hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(offset)))
	_, _ = hash.Write(head)
	_, _ = hash.Write(payload)
	copy(s[:], hash.Sum(nil))
	return s
}

package rowset

import (
	"errors"
	"sync"
)

// Bounds of ids that are texts.
const (
	IDBytesMax     = 256      // of one id
	idDictBytesMax = 64 << 20 // of all ids of a request
)

// ErrTooManyIDs says that the texts of the ids of one request are too long together.
var ErrTooManyIDs = errors.New("the ids of the request have more than 64 MiB")

// ValidID reports whether a text may be an id: it has 1 to IDBytesMax bytes.
func ValidID[T string | []byte](text T) bool { return len(text) > 0 && len(text) <= IDBytesMax }

// IDDict gives numbers to the text ids of one request. Rows have these numbers as ids. Equal texts have equal
// numbers; otherwise the numbers mean nothing, since they depend on which node came first. An IDDict only grows, so
// what Texts has returned stays true. Any goroutine. A body on the loop may wait for the lock, so nobody holds it for more than
// numberAtOnce texts.
type IDDict struct {
	mu    sync.Mutex
	texts dictBuilder // guarded by mu; its values do not change
	bytes int         // of all texts; guarded by mu
}

// NewIDDict returns an empty dictionary.
func NewIDDict() *IDDict { return &IDDict{texts: dictBuilder{dict: newDict(), many: new(manyValues)}} }

// Number appends the numbers of texts to ids, in their order. It copies those that are new. The error is ErrTooManyIDs.
func (d *IDDict) Number(ids []int64, texts ...[]byte) (_ []int64, err error) {
	for len(texts) > numberAtOnce && err == nil {
		ids, err = d.number(ids, texts[:numberAtOnce])
		texts = texts[numberAtOnce:]
	}
	if err != nil {
		return nil, err
	}
	return d.number(ids, texts)
}

// numberAtOnce is how many texts are numbered under the lock: some 20 µs.
const numberAtOnce = 256

func (d *IDDict) number(ids []int64, texts [][]byte) ([]int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, text := range texts {
		before := len(d.texts.dict.Values)
		id := d.texts.internBytes(text)
		if int(id) == before {
			if d.bytes += len(text); d.bytes > idDictBytesMax {
				return nil, ErrTooManyIDs
			}
		}
		ids = append(ids, int64(id))
	}
	return ids, nil
}

// Texts returns the texts of all numbers given so far, by number. They must not be changed.
func (d *IDDict) Texts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	values := d.texts.dict.Values
	return values[:len(values):len(values)]
}

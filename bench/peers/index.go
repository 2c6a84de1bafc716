package peers

// index finds rows by their ids. It is a table with open addressing, whose memory serves one
// request after another. A Go map takes twice the time. One goroutine at a time.
type index struct {
	slots []slot
	used  int
	round uint32 // slots of other rounds are empty
}

type slot struct {
	id    int64
	row   int32
	round uint32
}

// reset makes the index empty.
func (x *index) reset() {
	x.used = 0
	if x.round++; x.round == 0 { // after four billion
		clear(x.slots)
		x.round = 1
	}
}

// put returns the row of an id. An id without a row gets row.
func (x *index) put(id int64, row int) int {
	if 2*x.used >= len(x.slots) {
		x.grow()
	}
	s := x.slot(id)
	if s.round != x.round {
		*s = slot{id, int32(row), x.round}
		x.used++
	}
	return int(s.row)
}

// move gives another row to an id that has a row.
func (x *index) move(id int64, row int) { x.slot(id).row = int32(row) }

// find returns the row of an id, or -1.
func (x *index) find(id int64) int {
	if x.used == 0 {
		return -1
	}
	if s := x.slot(id); s.round == x.round {
		return int(s.row)
	}
	return -1
}

// slot returns the slot of an id, or the empty one that it would take.
func (x *index) slot(id int64) *slot {
	mask := uint64(len(x.slots) - 1)
	at := uint64(id) * 0x9e3779b97f4a7c15 >> 20
	for {
		s := &x.slots[at&mask]
		if s.round != x.round || s.id == id {
			return s
		}
		at++
	}
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]slot, max(64, 2*len(old)))
	if x.round == 0 {
		x.round = 1
	}
	for _, s := range old {
		if s.round == x.round {
			*x.slot(s.id) = s
		}
	}
}

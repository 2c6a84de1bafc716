package resp

import "github.com/rankd/rankd/loop/clock"

// A part is a span of a call's commands that leaves in one flight. It is separate from the call
// so that a call that ended early can be used again, while the replies still find their
// place and are dropped.
type part struct {
	call       *Call
	generation uint64 // of the call when the part was gathered
	from, to   int32  // commands from to to-1 of the call
	// at is the place of the first command in the flight, if the others follow it; otherwise it
	// is scattered, and pieces.places has the places.
	at  int32
	end int32 // the place behind the last of them in the flight
}

const scattered = -1

// wanted reports whether the call still waits for the replies to this part.
func (p *part) wanted() bool { return p.call.generation == p.generation }

// place returns where the flight has command k of the call. The part must be wanted.
func (p *part) place(k int) int {
	if p.at == scattered {
		return int(p.call.pieces.places[k])
	}
	return int(p.at-p.from) + k
}

// len returns the number of its commands.
func (p *part) len() int { return int(p.to - p.from) }

// holds reports whether the command at a place of the flight is one of the part's. The part must
// be wanted.
func (p *part) holds(place int) bool {
	if p.at != scattered {
		return place >= int(p.at) && place < int(p.end)
	}
	for _, at := range p.call.pieces.places[p.from:p.to] {
		if int(at) == place {
			return true
		}
	}
	return false
}

// A flight is what left in one write: commands that are answered in order, and the parts of
// calls that asked for them. Several parts may share a command.
type flight struct {
	commands int
	answered int // of them, by replies that are complete
	parts    int // of its parts, not yet delivered
	sentAt   clock.Time
	bulk     bulk // what large calls have in it
}

// bulk is a share of the room for large calls: commands, and the estimated bytes of their replies.
type bulk struct{ commands, bytes int }

func (b *bulk) add(o bulk) { b.commands, b.bytes = b.commands+o.commands, b.bytes+o.bytes }
func (b *bulk) sub(o bulk) { b.commands, b.bytes = b.commands-o.commands, b.bytes-o.bytes }

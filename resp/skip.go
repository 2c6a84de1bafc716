package resp

// skipNext makes a decoder that was just reset read the first reply without keeping it. Decode then returns how many
// bytes it no longer needs, even before the end of the batch. After the last byte of the reply, a Null takes its
// place, and Decode continues with the other replies.
func (d *Decoder) skipNext() {
	d.skipping, d.until = true, d.left-1
}

// skip reads more of a reply that nobody wants. It keeps the frames of open arrays, so that it
// finds the end, and nothing else.
func (d *Decoder) skip(data []byte) (consumed int, err error) {
	if d.skipLeft > 0 {
		consumed = min(d.skipLeft-len("\r\n"), len(data))
		d.skipLeft -= consumed
		rest := data[consumed:]
		if d.skipLeft > len("\r\n") || len(rest) < len("\r\n") {
			return consumed, nil
		}
		if rest[0] != '\r' || rest[1] != '\n' {
			return 0, d.malformed("a bulk string that is not kept does not end where its length says")
		}
		consumed += len("\r\n")
		d.skipLeft = 0
		d.closeValue()
	}
	d.pos, d.need, d.scanned, d.bulkEnd = consumed, 0, 0, 0
	if err := d.parse(data); err != nil {
		return 0, err
	}
	ended := d.left == d.until
	consumed = d.pos
	if !ended && d.bulkEnd > 0 {
		consumed = min(len(data), d.bulkEnd-len("\r\n")) // The end of the line is looked at when all of it is there.
		d.skipLeft = d.bulkEnd - consumed
	}
	d.vals, d.roots = d.vals[:0], d.roots[:0]
	switch {
	case ended:
		d.skipping, d.until = false, 0
		d.vals, d.roots = append(d.vals, value{kind: Null}), append(d.roots, 0)
	case len(d.open) > 0:
		// The frames need an entry in which to note their ends.
		d.vals, d.roots = append(d.vals, value{kind: Array}), append(d.roots, 0)
		for i := range d.open {
			d.open[i].index = 0
		}
	}
	d.pos, d.need, d.scanned, d.begun, d.data = 0, 0, 0, 0, nil
	return consumed, nil
}

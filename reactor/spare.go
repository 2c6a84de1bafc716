package reactor

// Bounds of the buffers that accepted connections reuse: 4 MiB together.
const (
	spareBuffersMax = 32
	spareBytesMax   = 2 * directFlushBytes
)

// spareBuffers are empty buffers for what accepted connections write. Only connections with unsent bytes need one,
// while each of ten thousand connections would otherwise keep one for good. Loop only.
type spareBuffers struct{ free [][]byte }

// take returns an empty buffer, which may be nil.
func (s *spareBuffers) take() []byte {
	last := len(s.free) - 1
	if last < 0 {
		return nil
	}
	buf := s.free[last]
	s.free[last] = nil
	s.free = s.free[:last]
	return buf
}

// put keeps a buffer for the next connection, unless it is huge or there are enough.
func (s *spareBuffers) put(buf []byte) {
	if cap(buf) > 0 && cap(buf) <= spareBytesMax && len(s.free) < spareBuffersMax {
		s.free = append(s.free, buf[:0])
	}
}

package respfront

import (
	"strconv"

	"github.com/tidwall/redcon"
)

// appendMap appends the header of a map: in RESP2 an array of keys and values.
func (c *codec) appendMap(dst []byte, pairs int) []byte {
	if !c.proto3 {
		return redcon.AppendArray(dst, 2*pairs)
	}
	return append(strconv.AppendInt(append(dst, '%'), int64(pairs), 10), '\r', '\n')
}

// appendNull appends the reply for nothing.
func (c *codec) appendNull(dst []byte) []byte {
	if c.proto3 {
		return append(dst, "_\r\n"...)
	}
	return redcon.AppendNull(dst)
}

// appendNullArray appends the reply for no array.
func (c *codec) appendNullArray(dst []byte) []byte {
	if c.proto3 {
		return append(dst, "_\r\n"...)
	}
	return append(dst, "*-1\r\n"...)
}

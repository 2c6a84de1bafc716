package testworld

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// DNS is a name server inside the process. It answers every question for an IPv4 address with
// the address that was set. Any goroutine.
type DNS struct {
	addr  atomic.Pointer[netip.Addr]
	asked atomic.Int64
	live  sync.WaitGroup
}

// NewDNS returns a server that answers with addr, an IPv4 address.
func NewDNS(addr string) *DNS {
	s := new(DNS)
	s.Set(addr)
	return s
}

// Set makes addr the answer from now on.
func (s *DNS) Set(addr string) {
	a := netip.MustParseAddr(addr)
	s.addr.Store(&a)
}

// Asked returns how often somebody asked for an IPv4 address.
func (s *DNS) Asked() int { return int(s.asked.Load()) }

// Dialer returns a dialer that resolves names by asking s. It asks nobody else, apart from the
// hosts file.
func (s *DNS) Dialer() *net.Dialer {
	return &net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		resolver, server := net.Pipe()
		s.live.Go(func() { s.serve(server) })
		return resolver, nil
	}}}
}

// Wait waits until no resolver is connected.
func (s *DNS) Wait() { s.live.Wait() }

// serve answers the questions of one connection. As always over TCP, its length precedes each
// question.
func (s *DNS) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply := s.reply(query)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// reply returns the answer to a message of one question: RFC 1035, section 4.
func (s *DNS) reply(query []byte) []byte {
	const header, typeA, classIN = 12, 1, 1
	end := header
	for query[end] != 0 { // labels of the name
		end += int(query[end]) + 1
	}
	end++
	kind := binary.BigEndian.Uint16(query[end:])
	reply := append([]byte(nil), query[:end+4]...)
	copy(reply[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // an answer, recursion available; one question, no records
	if kind != typeA {
		return reply
	}
	s.asked.Add(1)
	reply[7] = 1 // one record
	addr := s.addr.Load().As4()
	reply = append(reply, 0xc0, header, 0, typeA, 0, classIN, 0, 0, 0, 60, 0, 4)
	return append(reply, addr[:]...)
}

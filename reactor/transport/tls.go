package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// TLS returns a Secure whose configuration comes from config, once per connection; addr is the one that was dialed.
// A nil config has none.
func TLS(config func(addr string) (*tls.Config, error)) Secure {
	if config == nil {
		return nil
	}
	return func(ctx context.Context, nc net.Conn, addr string) (net.Conn, error) {
		c, err := config(addr)
		if err != nil {
			return nil, err
		}
		answered := false
		c.VerifyConnection = func(tls.ConnectionState) error { answered = true; return nil }
		conn := tls.Client(nc, c)
		err = conn.HandshakeContext(ctx)
		switch {
		case err == nil:
			return conn, nil
		case !answered && errors.Is(err, context.DeadlineExceeded):
			return nil, ErrNoHandshake
		default:
			return nil, fmt.Errorf("TLS: %w", explained(err))
		}
	}
}

// explained adds to an error of a handshake what it most likely means.
func explained(err error) error {
	switch {
	case errors.As(err, new(tls.RecordHeaderError)):
		return errors.New("the server does not speak TLS on this port")
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("the server ended the handshake, perhaps because it does not speak TLS on this port: %w", err)
	}
	return err
}

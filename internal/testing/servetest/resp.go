package servetest

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/redcon"
)

// Command returns a command as a client of Redis sends it.
func Command(words ...string) []byte {
	command := redcon.AppendArray(nil, len(words))
	for _, word := range words {
		command = redcon.AppendBulkString(command, word)
	}
	return command
}

// ReadReply returns the next reply of RESP2 or RESP3, as it comes.
func ReadReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return line, err
	}
	var n int
	switch line[0] {
	case '$':
		if _, err := fmt.Sscanf(line[1:], "%d", &n); err != nil || n < 0 {
			return line, err
		}
		body := make([]byte, n+2)
		_, err := io.ReadFull(r, body)
		return line + string(body), err
	case '*', '%':
		if _, err := fmt.Sscanf(line[1:], "%d", &n); err != nil {
			return line, err
		}
		if line[0] == '%' {
			n *= 2
		}
		for range n {
			element, err := ReadReply(r)
			if err != nil {
				return line, err
			}
			line += element
		}
	}
	return line, nil
}

// Text returns what a reply of one part says: the text of a status or a bulk string, or an error with its "-".
func Text(reply string) string {
	reply = strings.TrimSuffix(reply, "\r\n")
	if strings.HasPrefix(reply, "$") {
		_, bulk, _ := strings.Cut(reply, "\r\n")
		return bulk
	}
	return strings.TrimPrefix(reply, "+")
}

package cmdline

import (
	"io"
	"os"
)

// WriteFile uses write to write a file that a flag names.
func WriteFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

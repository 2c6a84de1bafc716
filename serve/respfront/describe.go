package respfront

import (
	"fmt"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/errtext"
)

// runPing is PING [message].
func runPing(_ *codec, args [][]byte, dst []byte) []byte {
	if len(args) == 2 {
		return redcon.AppendBulk(dst, args[1])
	}
	return redcon.AppendString(dst, "PONG")
}

// runEcho is ECHO message.
func runEcho(_ *codec, args [][]byte, dst []byte) []byte { return redcon.AppendBulk(dst, args[1]) }

// runSelect is SELECT index.
func runSelect(_ *codec, args [][]byte, dst []byte) []byte {
	if string(args[1]) != "0" {
		return redcon.AppendError(dst, "ERR DB index is out of range")
	}
	return redcon.AppendOK(dst)
}

// runConfig is CONFIG GET name... redis-benchmark asks what Redis keeps on disk; rankd stores nothing.
func runConfig(c *codec, args [][]byte, dst []byte) []byte {
	if !strings.EqualFold(string(args[1]), "GET") || len(args) < 3 {
		return redcon.AppendError(dst, "ERR only CONFIG GET name is known")
	}
	var found [][2]string
	for _, parameter := range [...][2]string{{"save", ""}, {"appendonly", "no"}} {
		for _, name := range args[2:] {
			if strings.EqualFold(string(name), parameter[0]) {
				found = append(found, parameter)
				break
			}
		}
	}
	dst = c.appendMap(dst, len(found))
	for _, parameter := range found {
		dst = redcon.AppendBulkString(redcon.AppendBulkString(dst, parameter[0]), parameter[1])
	}
	return dst
}

// runInfo is INFO. It shows all that there is, whatever sections are asked for.
func runInfo(c *codec, _ [][]byte, dst []byte) []byte {
	f := c.front
	return redcon.AppendBulkString(dst, fmt.Sprintf("# Server\r\nrankd_version:%s\r\nredis_version:%s\r\nredis_mode:standalone\r\nuptime_in_seconds:%d\r\n"+
		"\r\n# Clients\r\nconnected_clients:%d\r\nmaxclients:%d\r\n"+
		"\r\n# Stats\r\ntotal_connections_received:%d\r\ntotal_commands_processed:%d\r\n",
		f.options.Version, imitated, int64(f.Loop().Clock().Now().Sub(f.began).Seconds()), f.Connections(), f.options.MaxConnections, f.Entered(), f.commandsRun.Load()))
}

// runCommand is COMMAND, alone or with one of its subcommands.
func runCommand(c *codec, args [][]byte, dst []byte) []byte {
	f := c.front
	sub, names := "INFO", args[1:]
	if len(args) > 1 {
		sub, names = strings.ToUpper(errtext.Text(string(args[1]))), args[2:]
	}
	switch sub {
	case "COUNT":
		return redcon.AppendInt(dst, int64(len(f.table)))
	case "LIST":
		dst = redcon.AppendArray(dst, len(f.table))
		for i := range f.table {
			dst = redcon.AppendBulkString(dst, strings.ToLower(f.table[i].name))
		}
		return dst
	case "INFO":
		commands := f.named(names)
		dst = redcon.AppendArray(dst, len(commands))
		for _, cmd := range commands {
			if cmd == nil {
				dst = c.appendNullArray(dst)
			} else {
				dst = cmd.appendInfo(dst)
			}
		}
		return dst
	}
	return redcon.AppendError(dst, "ERR unknown subcommand '"+sub+"'. Try COMMAND COUNT, LIST or INFO")
}

// named returns the commands of those names, nil where there is none, or all commands if there are no names.
func (f *Front) named(names [][]byte) []*command {
	var commands []*command
	for i := range f.table {
		if len(names) == 0 {
			commands = append(commands, &f.table[i])
		}
	}
	for _, name := range names {
		cmd, _ := f.command(name)
		commands = append(commands, cmd)
	}
	return commands
}

// appendInfo appends what COMMAND INFO says: no command has keys.
func (cmd *command) appendInfo(dst []byte) []byte {
	arity := cmd.min
	if cmd.max != cmd.min {
		arity = -cmd.min
	}
	dst = redcon.AppendArray(dst, 10)
	dst = redcon.AppendBulkString(dst, strings.ToLower(cmd.name))
	dst = redcon.AppendInt(dst, int64(arity))
	if cmd.open {
		dst = redcon.AppendString(redcon.AppendArray(dst, 1), "no_auth")
	} else {
		dst = redcon.AppendString(redcon.AppendArray(dst, 1), "readonly")
	}
	for range 3 { // first key, last key, step
		dst = redcon.AppendInt(dst, 0)
	}
	for range 4 { // categories, tips, key specifications, subcommands
		dst = redcon.AppendArray(dst, 0)
	}
	return dst
}

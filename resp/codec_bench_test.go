package resp

import (
	"bytes"
	"testing"

	"github.com/tidwall/redcon"
)

// userHash is a HGETALL answer of the demo data's shape: five fields, 130 bytes.
func userHash() []byte {
	b := redcon.AppendArray(nil, 10)
	for _, s := range []string{
		"name", "Ada Lovelace", "country", "GB", "age", "36", "status", "active", "bio", "first programmer, poet's daughter",
	} {
		b = redcon.AppendBulkString(b, s)
	}
	return b
}

func BenchmarkDecode(b *testing.B) {
	hash := userHash()
	ids := redcon.AppendArray(nil, 100)
	for i := range 100 {
		ids = redcon.AppendBulkString(ids, string(rune('0'+i%10))+"12")
	}
	for _, c := range []struct {
		name  string
		reply []byte
	}{
		{"hgetall-5-fields", hash},
		{"lrange-100-ids", ids},
		{"integer", []byte(":12345\r\n")},
		{"bulk-64KiB", redcon.AppendBulk(nil, make([]byte, 64<<10))},
	} {
		b.Run(c.name, func(b *testing.B) {
			const n = 64
			data := bytes.Repeat(c.reply, n)
			d := NewDecoder(Limits{})
			b.SetBytes(int64(len(c.reply)))
			b.ReportAllocs()
			for i := 0; i < b.N; i += n {
				d.Reset(n)
				if _, done, err := d.Decode(data); !done || err != nil {
					b.Fatal(done, err)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	const n = 64
	each := func(name string, command func(*Batch, int64)) {
		b.Run(name, func(b *testing.B) {
			var batch Batch
			b.ReportAllocs()
			for i := 0; i < b.N; i += n {
				batch.Reset()
				for j := range n {
					command(&batch, int64(i+j))
				}
			}
			b.ReportMetric(float64(batch.Size())/n, "B/command")
		})
	}
	each("args", func(batch *Batch, id int64) {
		batch.Begin(2)
		batch.ArgString("HGETALL")
		batch.ArgKey("user:", id)
	})
	t := NewTemplate("HGETALL", "user:{id}")
	each("template", func(batch *Batch, id int64) { batch.CmdID(t, id) })
}

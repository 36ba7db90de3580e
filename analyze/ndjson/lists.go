package ndjson

import (
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/digits"
)

// objects are the attributes that are objects, and tell whether there is one.
var objects = map[string]func(*Encoder, *rpc.View) bool{
	"tunnel":     func(_ *Encoder, v *rpc.View) bool { return v.Tx.Connection.Tunnel != nil },
	"latency_ns": func(e *Encoder, v *rpc.View) bool { return e.reader.Phases(v) != nil },
	"file":       func(_ *Encoder, v *rpc.View) bool { return v.File() != nil },
	"kernel":     func(_ *Encoder, v *rpc.View) bool { return v.Tx.Kernel != nil },
}

// lists are the attributes that are arrays, or objects in objects, and one that every row has. They append all that is in them; nothing if there
// is none.
var lists = map[string]func(b []byte, v *rpc.View) []byte{
	"xid_hex":             func(b []byte, v *rpc.View) []byte { return append(digits.Hex32(append(b, `"0x`...), v.Tx.XID), '"') },
	"operations":          operations,
	"read_chunks":         func(b []byte, v *rpc.View) []byte { return reads(b, &v.Tx.Call) },
	"write_chunks":        func(b []byte, v *rpc.View) []byte { return writes(b, &v.Tx.Call) },
	"reply_chunk":         func(b []byte, v *rpc.View) []byte { return reply(b, &v.Tx.Call) },
	"written_chunks":      func(b []byte, v *rpc.View) []byte { return writes(b, &v.Tx.Reply) },
	"written_reply_chunk": func(b []byte, v *rpc.View) []byte { return reply(b, &v.Tx.Reply) },
	"reply_read_chunks": func(b []byte, v *rpc.View) []byte {
		if m := &v.Tx.Reply; m.Transport && len(m.Header.Reads) > 0 {
			return reads(b, m)
		}
		return b
	},
	"lost_ns": func(b []byte, v *rpc.View) []byte {
		if v.Tx.Blame == nil {
			return b
		}
		return lost(b, v.Tx.Blame)
	},
	"notes": func(b []byte, v *rpc.View) []byte {
		b = append(b, '[')
		for i, n := range v.Tx.Notes {
			b = Quote(comma(b, i), n.String())
		}
		return append(b, ']')
	},
	"note_codes": func(b []byte, v *rpc.View) []byte {
		b = append(b, '[')
		for i, n := range v.Tx.Notes {
			b = text(comma(b, i), n.Kind.Code())
		}
		return append(b, ']')
	},
}

// comma appends one in front of all but the first of a list.
func comma(b []byte, i int) []byte {
	if i == 0 {
		return b
	}
	return append(b, ',')
}

// operations appends those of a COMPOUND, if there are any.
func operations(b []byte, v *rpc.View) []byte {
	ops := v.Steps()
	if len(ops) == 0 {
		return b
	}
	b = append(b, '[')
	for i := range ops {
		b = str(comma(b, i), `{"op":`, ops[i].Name)
		if ops[i].Status == "" {
			b = append(b, `,"status":null}`...)
		} else {
			b = append(str(b, `,"status":`, ops[i].Status), '}')
		}
	}
	return append(b, ']')
}

// reads appends Read chunks.
func reads(b []byte, m *transaction.Message) []byte {
	b = append(b, '[')
	if m.Transport {
		for i, c := range m.Header.ReadChunks() {
			b = num(comma(b, i), `{"position":`, uint64(c.Position))
			b = append(b, `,"segments":[`...)
			for j := range c.Segments {
				b = segment(comma(b, j), &c.Segments[j].Segment)
			}
			b = append(b, `]}`...)
		}
	}
	return append(b, ']')
}

// writes appends Write chunks.
func writes(b []byte, m *transaction.Message) []byte {
	b = append(b, '[')
	if m.Transport {
		for i, c := range m.Header.Writes {
			b = segments(comma(b, i), c)
		}
	}
	return append(b, ']')
}

// reply appends a Reply chunk, if there is one.
func reply(b []byte, m *transaction.Message) []byte {
	if !m.Transport || !m.Header.HasReply {
		return b
	}
	return segments(b, m.Header.Reply)
}

func segments(b []byte, c rpcrdma.WriteChunk) []byte {
	b = append(b, '[')
	for i := range c {
		b = segment(comma(b, i), &c[i])
	}
	return append(b, ']')
}

func segment(b []byte, s *rpcrdma.Segment) []byte {
	b = num(b, `{"handle":`, uint64(s.Handle))
	b = num(b, `,"length":`, uint64(s.Length))
	b = num(b, `,"offset":`, s.Offset)
	return append(b, '}')
}

// lost appends what the time was lost to.
func lost(b []byte, blame *transaction.Blame) []byte {
	brace := len(b)
	sum := time.Duration(0)
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		d := blame.Of(c)
		sum += d
		b = dur(b, c.String(), d)
	}
	b[brace] = '{'
	b = dur(b, "total", sum)
	if sum > 0 {
		b = append(b, `,"phases":`...)
		brace = len(b)
		for ph := range transaction.Parts() {
			inner := 0
			for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
				d := blame.Shares[ph][c]
				if d == 0 {
					continue
				}
				if inner == 0 {
					b = name(b, ph.String())
					inner = len(b)
				}
				b = dur(b, c.String(), d)
			}
			if inner > 0 {
				b[inner] = '{'
				b = append(b, '}')
			}
		}
		b[brace] = '{'
		b = append(b, '}')
	}
	return append(b, '}')
}

// name appends a key that is not known before the program runs.
func name(b []byte, key string) []byte {
	return append(append(append(b, ',', '"'), key...), '"', ':')
}

// dur appends such a key, and a duration.
func dur(b []byte, key string, d time.Duration) []byte {
	return strconv.AppendInt(name(b, key), int64(d), 10)
}

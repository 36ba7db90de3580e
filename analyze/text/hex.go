package text

import (
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// bytes writes the messages of a transaction in hexadecimal.
func (t *Tree) bytes(b []byte, v *rpc.View) []byte {
	b = t.raw(b, "Call", &v.Tx.Call)
	return t.raw(b, "Reply", &v.Tx.Reply)
}

func (t *Tree) raw(b []byte, name string, m *transaction.Message) []byte {
	if !m.Seen() {
		return b
	}
	send := m.Raw()
	if m.Transport && len(send) > 0 {
		n := min(m.Header.Length, len(send))
		b = t.heading(b, name)
		b = append(b, ", transport header:\n"...)
		b = Hex(b, send[:n], 4)
	}
	if len(m.Payload) > 0 {
		b = t.heading(b, name)
		b = append(b, ", RPC message:\n"...)
		b = Hex(b, m.Payload, 4)
	}
	return b
}

const hexRow = 16

// Hex appends a dump of v: offset, 16 bytes, and their ASCII characters.
func Hex(b, v []byte, indent int) []byte {
	for at := 0; at < len(v); at += hexRow {
		row := v[at:min(at+hexRow, len(v))]
		for range indent {
			b = append(b, ' ')
		}
		b = append(b, hexDigits[at>>28&15], hexDigits[at>>24&15], hexDigits[at>>20&15], hexDigits[at>>16&15],
			hexDigits[at>>12&15], hexDigits[at>>8&15], hexDigits[at>>4&15], hexDigits[at&15])
		b = append(b, ' ')
		for i := range hexRow {
			if i%4 == 0 {
				b = append(b, ' ')
			}
			if i < len(row) {
				b = append(b, hexDigits[row[i]>>4], hexDigits[row[i]&15])
			} else {
				b = append(b, ' ', ' ')
			}
		}
		b = append(b, ' ', ' ')
		for _, c := range row {
			if c < 0x20 || c > 0x7e {
				c = '.'
			}
			b = append(b, c)
		}
		b = append(b, '\n')
	}
	return b
}

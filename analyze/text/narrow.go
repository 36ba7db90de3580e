package text

import (
	"bytes"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

// LeastWidth is the least number of columns of which no line takes more.
const LeastWidth = 60

const (
	narrowProgram   = 6 // nfs4.1
	narrowOperation = 8
	mostOperation   = 14 // of a COMPOUND with more operations, the middle is left out
	maxExplained    = 4096
)

// narrow appends a line for a terminal that has no room for two addresses. The number of the connection stands for them, and
// the first line of a connection is preceded by one that says which they are. What does not fit is shortened, least first what
// the listing exists for: the file, then the chunks, the operation, and what follows the status.
func (s *Lister) narrow(b []byte, v *rpc.View, hosts *pair) []byte {
	tx := v.Tx
	b = s.explain(b, tx.Connection.ID, hosts)
	b, col := s.time(b, tx)
	l := line{b: b, col: col}
	number := l.col
	l.str("#")
	l.str(strconv.Itoa(tx.Connection.ID))
	l.str(" ")
	l.pad(number + len("#1 "))
	l.str(strconv.FormatUint(uint64(tx.XID)|1<<32, 16)[1:])
	l.str(" ")
	program := l.col
	s.program(&l, v)
	l.str(" ")
	l.pad(program + narrowProgram + 1)

	marks := s.marks(v)
	s.chunks = Chunks(s.chunks[:0], tx)
	var room [32]byte
	latency, latencyColumns := s.latency(room[:0], tx)
	end := s.Width - 1 - max(marks, statusWidth) // of the latency
	right := end - max(latencyColumns, latencyWidth) - 1
	// Between here and right are the operation, the file and the chunks, with a space behind the first two.
	operation := s.operation(&l, v, max(min(mostOperation, right-l.col-1), 3))
	l.str(" ")
	l.pad(operation + narrowOperation + 1)
	free := right - l.col
	chunks, chunkColumns := shorten(s.chunks, 0, len(s.chunks), max(free, 1))
	if chunkColumns > free {
		chunks, chunkColumns = chunks[:0], 0
	}
	if limit := free - chunkColumns - 1; limit >= 3 {
		columns := 0
		s.piece, columns = subject(s.piece[:0], &s.path, v, limit)
		if columns > limit { // the range leaves no room for the name
			s.piece, columns = shorten(s.piece, 0, columns, limit)
		}
		l.b, l.col = append(l.b, s.piece...), l.col+columns
	}
	l.pad(right - chunkColumns)
	l.b, l.col = append(l.b, chunks...), l.col+chunkColumns
	l.str(" ")
	l.pad(end - latencyColumns)
	l.b, l.col = append(l.b, latency...), l.col+latencyColumns
	l.str(" ")
	if left := s.Width - l.col; s.tail.col > left {
		color := s.Color
		s.Color = false // only plain text can be cut
		s.marks(v)
		s.Color = color
		s.tail.b, s.tail.col = shorten(s.tail.b, 0, s.tail.col, max(left, 1))
	}
	return append(l.b, s.tail.b...)
}

// marks puts the status and what follows it into tail, and returns how many columns they take.
func (s *Lister) marks(v *rpc.View) int {
	status, columns := s.outcome(v)
	if status != "" {
		s.tail.b, s.tail.col = append(s.tail.b[:0], status...), columns
	}
	return columns
}

// operation writes the operation in at most limit columns, and returns the column in which it begins.
func (s *Lister) operation(l *line, v *rpc.View, limit int) int {
	from := l.col
	if s.Color {
		l.b = append(l.b, operationColor(v)...)
	}
	start := len(l.b)
	if v.Tx.Named {
		l.b = Operations(l.b, v)
	} else {
		l.b = append(l.b, '?')
	}
	b, columns := shorten(l.b, start, len(l.b)-start, limit)
	l.b, l.col = b, l.col+columns
	if s.Color {
		l.b = append(l.b, ColorOff...)
	}
	return from
}

// explain appends a line with the addresses of a connection, once.
func (s *Lister) explain(b []byte, number int, hosts *pair) []byte {
	if _, ok := s.explained[number]; ok {
		return b
	}
	if s.explained == nil || len(s.explained) >= maxExplained {
		s.explained = make(map[int]struct{})
	}
	s.explained[number] = struct{}{}
	b = append(strconv.AppendInt(append(b, '#'), int64(number), 10), ": "...)
	return append(append(b, bytes.TrimRight(hosts.text, " ")...), '\n')
}

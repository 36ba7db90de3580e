package capture

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
)

// erfRecord is a record of an Ethernet frame, with extension headers.
func erfRecord(second uint32, extensions int, frame string) []byte {
	b := append([]byte(nil), make([]byte, erfHeader)...)
	binary.LittleEndian.PutUint32(b, 1<<31) // half a second
	binary.LittleEndian.PutUint32(b[4:], second)
	b[8] = erfEthernet
	if extensions > 0 {
		b[8] |= erfMore
	}
	for i := range extensions {
		head := byte(3)
		if i < extensions-1 {
			head |= erfMore
		}
		b = append(b, head, 1, 2, 3, 4, 5, 6, 7)
	}
	binary.BigEndian.PutUint16(b[14:], uint16(len(frame)))
	b = append(append(b, 0, 0), frame...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	binary.BigEndian.PutUint16(b[10:], uint16(len(b)))
	return b
}

// Records of ERF without a file header: their frames, times, extension headers and padding, damage and a cut end.
func TestERF(t *testing.T) {
	const second = 1700000000
	first, other := erfRecord(second, 2, strings.Repeat("a", 61)), erfRecord(second+1, 0, strings.Repeat("b", 60))
	for _, c := range []struct {
		name    string
		input   []byte
		packets int
		problem string
	}{
		{"whole", bytes.Join([][]byte{first, other}, nil), 2, ""},
		{"damage", bytes.Join([][]byte{first, bytes.Repeat([]byte{0xff}, 33), other, first}, nil), 3, "skipped 33 bytes"},
		{"cut in a record", bytes.Join([][]byte{first, other[:30]}, nil), 1, "the last 30 bytes are lost"},
		{"cut in a header", bytes.Join([][]byte{first, other[:9]}, nil), 1, "the last 9 bytes are lost"},
		{"damaged to the end", bytes.Join([][]byte{first, bytes.Repeat([]byte{0xff}, 40)}, nil), 1, "the last 40 bytes are lost"},
	} {
		for _, size := range []int{0, 64} {
			r, err := NewReader(bytes.NewReader(c.input), "x", Options{BatchSize: size})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			var b Batch
			var got []Packet
			for {
				if err = r.Read(&b); err != nil {
					break
				}
				for _, p := range b.Packets {
					p.Data = bytes.Clone(p.Data)
					got = append(got, p)
				}
			}
			problems, _ := r.Problems()
			switch {
			case err != io.EOF || len(got) != c.packets:
				t.Errorf("%s: %d packets, %v", c.name, len(got), err)
			case got[0].Time != second*1e9+5e8 || got[0].Link != LinkERF || int(got[0].Length) != 16+16+2+61 || len(got[0].Data) != 16+16+2+61:
				t.Errorf("%s: %+v", c.name, got[0])
			case c.problem == "" && len(problems) > 0 || c.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), c.problem)):
				t.Errorf("%s: %v", c.name, problems)
			}
		}
	}
}

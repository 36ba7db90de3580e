package check_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// What a packet with a wrong checksum says is nobody's fault: damage gives no finding besides its own.
func TestDamagedContents(t *testing.T) {
	for _, file := range append(sampled.Captures(t, "iwarp-nfs3-crc"), sampled.Captures(t, "rocev2-*l")...) {
		all := everything(t, file)
		base := accused(all)
		var may []int // packets with a message
		for i := range all {
			if payloadOf(all[i].Data) != nil {
				may = append(may, i)
			}
		}
		for seed := range uint64(sampled.Rounds(400)) {
			rng := rand.New(rand.NewPCG(seed, 1))
			damaged := slices.Clone(all)
			i := may[rng.IntN(len(may))]
			damaged[i].Data = bytes.Clone(damaged[i].Data)
			b := payloadOf(damaged[i].Data)
			at := 4 * rng.IntN(len(b)/4)
			switch n := min(4*(1+rng.IntN(10)), len(b)-at); rng.IntN(3) {
			case 0:
				binary.BigEndian.PutUint32(b[at:], rng.Uint32())
			case 1:
				b[at] ^= 1 << rng.IntN(8)
			default:
				clear(b[at : at+n])
			}
			for verdict, about := range accused(damaged) {
				if _, ok := base[verdict]; !ok && verdict != "warning bad-crc" {
					t.Errorf("%s, seed %d, packet %d from byte %d: %s: %s", filepath.Base(file), seed, damaged[i].Number, at, verdict, about)
				}
			}
		}
	}
}

// payloadOf is what the RDMA operation of an IPv4 packet carries, nil if there is none, or a message of connection management: what is behind the BTH, or behind the length of the first FPDU.
func payloadOf(b []byte) []byte {
	if len(b) < 74 || b[12] != 8 || b[13] != 0 {
		return nil
	}
	from := 0
	switch number := func(at int) int { return int(binary.BigEndian.Uint16(b[at:])) }; {
	case b[23] == 17 && number(36) == 4791 && number(16) > 20+8+12+4+4:
		from = 14 + 20 + 8 + 12
	case b[23] == 6 && (number(34) == 20049 || number(36) == 20049):
		if from = 34 + int(b[46]>>4)*4 + 2; bytes.Contains(b, []byte("MPA ID")) {
			return nil
		}
	}
	end := min(len(b), 14+int(binary.BigEndian.Uint16(b[16:]))) - 4
	if from == 0 || end < from+8 {
		return nil
	}
	return b[from:end]
}

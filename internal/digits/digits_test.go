package digits

import (
	enc "encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// numbers are those at the edges of each number of digits and bits, and others of all lengths.
func numbers() (list []uint64) {
	for p := uint64(1); ; p *= 10 {
		list = append(list, p-1, p, p+1)
		if p == 1e19 {
			break
		}
	}
	for v := range uint64(20000) {
		list = append(list, v, v*10000)
	}
	for n := range 64 {
		list = append(list, 1<<n-1, 1<<n, rand.Uint64()>>n)
	}
	return append(list, math.MaxUint64)
}

func TestAppend(t *testing.T) {
	for _, v := range numbers() {
		for _, b := range [][]byte{nil, []byte("x="), append(make([]byte, 0, 64), "x="...)} {
			if got, want := string(Append(b, v)), string(strconv.AppendUint(b, v, 10)); got != want {
				t.Fatalf("%d: %q, want %q", v, got, want)
			}
		}
	}
}

func TestMicroNano(t *testing.T) {
	for _, v := range numbers() {
		micro, nano := uint32(v%1e6), uint32(v%1e9)
		if got, want := string(Micro([]byte("."), micro)), fmt.Sprintf(".%06d", micro); got != want {
			t.Fatalf("%d: %q, want %q", micro, got, want)
		}
		if got, want := string(Nano([]byte("."), nano)), fmt.Sprintf(".%09d", nano); got != want {
			t.Fatalf("%d: %q, want %q", nano, got, want)
		}
	}
}

func TestPoint(t *testing.T) {
	for v := range uint32(10000) {
		for decimals, unit := range map[int]uint32{1: 10, 2: 100, 3: 1000} {
			want := fmt.Sprintf("=%0*d.%0*d", 4-decimals, v/unit, decimals, v%unit)
			if got := string(Point([]byte("="), v, decimals)); got != want {
				t.Fatalf("%d with %d decimals: %q, want %q", v, decimals, got, want)
			}
		}
	}
}

func TestHex(t *testing.T) {
	for _, v := range numbers() {
		if got, want := string(Hex32([]byte("0x"), uint32(v))), fmt.Sprintf("0x%08x", uint32(v)); got != want {
			t.Fatalf("%d: %q, want %q", v, got, want)
		}
	}
	for n := range 70 {
		v := make([]byte, n)
		for i := range v {
			v[i] = byte(rand.Uint32())
		}
		if got, want := string(Hex([]byte("x"), v)), "x"+enc.EncodeToString(v); got != want {
			t.Fatalf("%x: %q, want %q", v, got, want)
		}
		room := []byte(strings.Repeat("x", 2*n+5))
		if size := PutHex(room, v); size != 2*n || string(room) != enc.EncodeToString(v)+"xxxxx" {
			t.Fatalf("%x: %d digits, %q", v, size, room)
		}
	}
}

func TestAllocates(t *testing.T) {
	b := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { Hex32(Micro(Append(b, math.MaxUint64), 12345), 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, v := range []uint64{7, 1234, 1234567890, math.MaxUint64} {
		buf := make([]byte, 0, 64)
		b.Run(fmt.Sprint(v), func(b *testing.B) {
			for b.Loop() {
				Append(buf, v)
			}
		})
		b.Run(fmt.Sprint(v, "strconv"), func(b *testing.B) {
			for b.Loop() {
				strconv.AppendUint(buf, v, 10)
			}
		})
	}
}

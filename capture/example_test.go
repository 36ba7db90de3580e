package capture_test

import (
	"fmt"
	"log"

	"github.com/rpcrdma/toolkit/capture"
)

// A Reader hands out batches, whose memory it uses again.
func ExampleReader() {
	r, err := capture.Open([]string{"../samples/rocev2-rping.pcap"}, capture.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	var b capture.Batch
	packets, bytes := 0, 0
	for err = r.Read(&b); err == nil; err = r.Read(&b) {
		for i := range b.Packets {
			packets++
			bytes += int(b.Packets[i].Length)
		}
	}
	_, damaged := r.Problems()
	fmt.Printf("%d packets, %d bytes, %d damaged places: %v\n", packets, bytes, damaged, err)
	// Output:
	// 47 packets, 4790 bytes, 0 damaged places: EOF
}

func ExamplePackets() {
	r, err := capture.Open([]string{"../samples/rocev2-rping.pcap"}, capture.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for p, err := range capture.Packets(r) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.Number, p.Length, len(p.Data))
		if p.Number == 3 {
			break
		}
	}
	// Output:
	// 1 90 90
	// 2 90 90
	// 3 42 42
}

// Package ibcm decodes and encodes the messages with which InfiniBand and RoCE
// connections are set up and torn down: management datagrams (MADs) of the
// communication management class, sent as UD packets to queue pair 1
// (IBTA volume 1, chapter 12), with the private data of IP addressed services
// in them.
//
// Each message is a defined byte slice over the 232 bytes that follow the MAD
// header. Its getters return zero, and its setters do nothing, where the slice
// is too short: the capture may have cut it. Decode reads a MAD into one
// Message.
package ibcm

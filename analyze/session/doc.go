// Package session tells of NFSv4.1 sessions across their connections: slots, the backward channel, trunking, and what
// each connection carried. Clients of versions without sessions are told by address, for nconnect. Of pNFS it names
// layouts and devices, and joins I/O to data servers with the file that the metadata server told.
package session

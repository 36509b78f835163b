// Checks with Go's sumdb/tlog what the event store makes: one line of JSON in, "true" or "false" out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/mod/sumdb/tlog"
)

type question struct {
	Kind       string
	Size, Old  int64
	Index      int64
	Root       []byte
	OldRoot    []byte
	Leaf       []byte
	Proof      [][]byte
	TileFolder string
}

func hash(bytes []byte) (h tlog.Hash) {
	copy(h[:], bytes)
	return h
}

// folder reads tiles of https://c2sp.org/tlog-tiles, whose level 0 this package calls 0 too.
type folder string

func (f folder) Height() int { return 8 }

func (f folder) SaveTiles([]tlog.Tile, [][]byte) {}

func (f folder) ReadTiles(tiles []tlog.Tile) (data [][]byte, err error) {
	for _, tile := range tiles {
		bytes, err := os.ReadFile(fmt.Sprintf("%s/%s", string(f), tile.Path()))
		if err != nil {
			return nil, err
		}
		data = append(data, bytes)
	}
	return data, nil
}

func check(q question) bool {
	var proof []tlog.Hash
	for _, one := range q.Proof {
		proof = append(proof, hash(one))
	}
	switch q.Kind {
	case "inclusion":
		return tlog.CheckRecord(proof, q.Size, hash(q.Root), q.Index, hash(q.Leaf)) == nil
	case "consistency":
		return tlog.CheckTree(proof, q.Size, hash(q.Root), q.Old, hash(q.OldRoot)) == nil
	case "tiles":
		tree := tlog.Tree{N: q.Size, Hash: hash(q.Root)}
		// The reader compares each tile with the root.
		reader := tlog.TileHashReader(tree, folder(q.TileFolder))
		hashes, err := reader.ReadHashes([]int64{tlog.StoredHashIndex(0, q.Index)})
		return err == nil && hashes[0] == hash(q.Leaf)
	}
	return false
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var q question
		fmt.Println(json.Unmarshal(line, &q) == nil && check(q))
	}
}

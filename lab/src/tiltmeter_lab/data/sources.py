"""Sources: the public data sets that the laboratory reads, beside those of tiltmeter."""

from __future__ import annotations

from tiltmeter.data.public.sources import UCI, Archive, File, Source

IDX = (
    *("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    *("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
)


def _gzipped(base: tuple[str, ...], sums: tuple[str, ...], contents: tuple[str, ...]) -> tuple[File, ...]:
    return tuple(
        File(name, tuple(url + name for url in base), md5, content)
        for name, md5, content in zip(IDX, sums, contents, strict=True)
    )


CIFAR10 = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
#: Every data set by name. The publishers' checksums of gzip files are those that they or their mirrors state; contents
#: and German credit were compared with real files; CIFAR-10's is on its page; CelebA and Waterbirds publish none.
SOURCES = {
    source.name: source
    for source in (
        Source(
            "mnist",
            "60,000 + 10,000 handwritten digits, 28 x 28",
            "commonly listed as CC BY-SA 3.0",
            _gzipped(
                (
                    "https://ossci-datasets.s3.amazonaws.com/mnist/",
                    "https://storage.googleapis.com/cvdf-datasets/mnist/",
                ),
                (
                    *("f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432"),
                    *("9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"),
                ),
                (
                    *("6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624"),
                    *("2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637"),
                ),
            ),
            load="tiltmeter_lab.data.mnist:whole_mnist",
        ),
        Source(
            "fashion-mnist",
            "60,000 + 10,000 articles of clothing, 28 x 28",
            "MIT",
            _gzipped(
                (
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                ),
                (
                    *("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe"),
                    *("bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"),
                ),
                (
                    *("f4a8712d7a061bf5bd6d2ca38dc4d50a", "9018921c3c673c538a1fc5bad174d6f9"),
                    *("8181f5470baa50b63fa0f6fddb340f0a", "15d484375f8d13e6eb1aabb0c3f46965"),
                ),
            ),
            load="tiltmeter_lab.data.mnist:whole_fashion_mnist",
        ),
        Source(
            "cifar10",
            "50,000 + 10,000 colour photographs of ten classes, 32 x 32 (binary version)",
            "none stated; research use",
            tuple(File(f"{name}.bin", size=30_730_000) for name in CIFAR10),
            Archive("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),
            folders=("cifar-10-batches-bin",),
            load="tiltmeter_lab.data.cifar10:whole",
        ),
        Source(
            "german",
            "1,000 people who asked a German bank for credit: good or bad risk?",
            "CC BY 4.0 (UCI)",
            (File("german.data", (f"{UCI}/statlog/german/german.data",), "6b94c2e35480e671545e52a808a8a549"),),
            load="tiltmeter_lab.data.german:whole",
        ),
        Source(
            "celeba",
            "202,599 photographs of faces with 40 attributes",
            "non-commercial research; do not redistribute",
            (File("list_attr_celeba.txt"), File("list_eval_partition.txt"), File("img_align_celeba")),
            by_hand="its publishers provide it at https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html under their "
            "own conditions: put list_attr_celeba.txt, list_eval_partition.txt and the folder img_align_celeba there",
            load="tiltmeter_lab.data.celeba:whole",
        ),
        Source(
            "waterbirds",
            "11,788 photographs of land and water birds, on land or water as a background",
            "none stated; from CUB-200-2011 and Places",
            (File("metadata.csv", rows=11_788),),
            Archive("https://nlp.stanford.edu/data/dro/waterbird_complete95_forest2water2.tar.gz", whole=True),
            folders=("waterbird_complete95_forest2water2",),
            load="tiltmeter_lab.data.waterbirds:whole",
        ),
        Source(
            "utkface",
            "23,708 photographs of faces with age, sex and race in their names",
            "non-commercial research; do not redistribute",
            (File("UTKFace"),),
            by_hand="its publishers provide it at https://susanqq.github.io/UTKFace under their own conditions: put "
            "the folder UTKFace of aligned and cropped faces there",
            load="tiltmeter_lab.data.utkface:whole",
        ),
        Source(
            "bar",
            "1,941 + 654 photographs of six actions, in training at typical places only",
            "per photograph, in metadata.json",
            (File("train"), File("test")),
            by_hand="its publishers provide it at https://github.com/alinlab/BAR: put the folders train and test there",
            load="tiltmeter_lab.data.bar:whole",
        ),
    )
}

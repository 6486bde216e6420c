"A Watch inside a real Lightning training; skipped where Lightning is not installed (fa_nb does not depend on it)."
import pytest, torch
from torch import nn
from torch.nn import functional as F

lightning = pytest.importorskip("lightning.pytorch")

from fa_nb.watch import Watch
from fa_nb.records import load_record


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 16)
        self.blocks = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(0.2)) for _ in range(3)))
        self.head = nn.Linear(16, 3)

    def forward(self, x): return self.head(self.blocks(self.embed(x)))

    def training_step(self, batch, _): return F.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)


def trained(folder, watched):
    lightning.seed_everything(1)
    x, y = torch.randn(96, 8), torch.randint(0, 3, (96,))
    net = Net()
    watch = Watch(net, x[:32], y[:32], every=4, lr=0.1, batch_size=8) if watched else None
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=watched, default_root_dir=folder,
                                enable_progress_bar=False, callbacks=[watch.as_callback()] if watched else None)
    trainer.fit(net, torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8))
    return [p.detach() for p in net.parameters()], watch


def test_watch_as_a_lightning_callback(tmp_path):
    weights, watch = trained(tmp_path, watched=True)
    record = load_record(watch.save(tmp_path / "runs"))
    assert [entry.epoch for entry in record.log] == [0, 4, 8, 12, 16, 20, 24]
    assert record.config.model == "Net" and record.log[-1].loss_eval != record.log[0].loss_eval
    unwatched, _ = trained(tmp_path, watched=False)
    assert all(torch.equal(a, b) for a, b in zip(weights, unwatched))
